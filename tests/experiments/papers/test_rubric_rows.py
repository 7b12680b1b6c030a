"""Rubrics, their filter, and rows for the models that learn them."""

import pytest

from experiments.papers.worlds import rubric_rows
from rl_jax.worlds import PrinciplePairs, principle_pairs

TASK = PrinciplePairs(num_topics=5, num_validation=7)
# 'es' is met 8, 6, 5 and 0 times, 'ob' the other way round.
ORDERED = ['0224', '0268', '2345', '7999']


def test_the_filter_by_hand():
  """The true rubric keeps all pairs, the opposite one none; 'eu' is met 6, 7,
  5 and 1 times: five of six pairs are right, and these stay.
  """
  assert [principle_pairs.met('es', x) for x in ORDERED] == [8, 6, 5, 0]
  assert len(rubric_rows.consistent('es', ORDERED)) == 6
  assert rubric_rows.consistent('ob', ORDERED) == []
  met = [principle_pairs.met('eu', x) for x in ORDERED]
  assert met == [6, 7, 5, 1]
  kept = rubric_rows.consistent('eu', ORDERED)
  assert len(kept) == 5 and (ORDERED[0], ORDERED[1]) not in kept


@pytest.mark.parametrize('rubric', ['es', 'eu', 'ob'])
def test_two_responses_are_kept_if_the_judge_is_right(rubric):
  pair = ORDERED[:2]
  right = principle_pairs.better(rubric, *pair) == '1'
  assert rubric_rows.consistent(rubric, pair) == [tuple(pair)] * right


def rows(form, noise, filtered):
  proposed = rubric_rows.proposals(TASK, 3, 4, noise, 0)
  return list(rubric_rows.taught(proposed, form, filtered))


@pytest.mark.parametrize('form', ['rubrics', 'verdicts'])
def test_without_noise_the_filter_changes_nothing(form):
  """E0: every rubric is that of its topic, which confirms every order."""
  assert rows(form, 0.0, True) == rows(form, 0.0, False)
  wrong = rows(form, 1.0, False)
  assert len(wrong) == len(rows(form, 0.0, False)) > len(rows(form, 1.0, True))


def test_verdicts_say_what_is_better():
  """Also of wrong rubrics, unfiltered: the order is that of the topic."""
  for row in rows('verdicts', 0.5, False):
    topic = row['prompt'][:2]
    one, two = row['prompt'].partition('|')[2][:-1].split('?')
    true = TASK.rubric_of(topic)
    assert principle_pairs.better(true, one, two) == row['completion']
  for row in rows('verdicts', 0.5, True):
    rubric = row['prompt'][2:4]
    one, two = row['prompt'].partition('|')[2][:-1].split('?')
    assert principle_pairs.better(rubric, one, two) == row['completion']


def test_questions_are_asked_in_both_orders():
  """With the rubric of the cache, whatever it is."""
  found = list(rubric_rows.questions(TASK, ['xx'] * 5))
  assert len(found) == 14
  for first, second in zip(found[::2], found[1::2], strict=True):
    assert {first['completion'], second['completion']} == {'1', '2'}
    assert first['prompt'][2:5] == second['prompt'][2:5] == 'xx|'
  with pytest.raises(ValueError, match='4 rubrics for 5 topics'):
    list(rubric_rows.questions(TASK, ['xx'] * 4))


def test_results_by_hand():
  judged = {
    'greedy': [1.0, 1.0, 0.0, 1.0],
    'samples': [[1, 1, 0], [0, 0, 1], [1, None, 1], [0, 0, 0]],
  }
  assert rubric_rows.result(judged) == {
    'greedy': 0.75,
    'votes': 0.5,
    'orders_agree': 0.5,
  }
