"""Situations of a log, scores of analyses, and what an adviser says then."""

import pytest

from experiments.papers.episodes import advice_rows
from rl_jax.worlds.guided_key_door import SITUATIONS


def turn(letter, held, followed=0.0):
  return {
    'observation': f'01{letter}>',
    'state': str((0, 1, held)),
    'rewards': {'followed': followed},
  }


# Two strides of two turns; the second is cut by the limit of turns.
EPISODE = {
  'turns': [
    *(turn('K', 0), turn('K', 0, 0.99)),
    *(turn('G', 1), turn('G', 1, 0.27)),
    turn('D', 1),
  ]
}


def test_strides_by_hand():
  found = list(advice_rows.segments([EPISODE], 2))
  assert found == [('-n-', 'K', 0.99), ('kK+', 'G', 0.27)]


def test_the_adviser_errs_unless_the_analysis_is_right():
  """It says the same always."""
  for situation in SITUATIONS:
    right = advice_rows.missing(situation)
    assert advice_rows.adviser(situation, right) == right.upper()
  others = [
    advice_rows.adviser(x, a) == advice_rows.missing(x).upper()
    for x in SITUATIONS
    for a in advice_rows.ANALYSES
    if a != advice_rows.missing(x)
  ]
  assert 0.1 < sum(others) / len(others) < 0.6


def test_scores_are_means_of_what_was_followed():
  """A sub-goal that was not tried has the mean of all, 0.5 here."""
  found = [('-n-', 'K', 0.9), ('-n-', 'K', 0.5), ('-n-', 'G', 0.1)]
  (row,) = advice_rows.table(found)
  assert row['prompt'] == '-n-:' and row['completion'] == 'k'
  assert row['scores']['k'] == pytest.approx(0.7)
  means = {'K': 0.7, 'G': 0.1, 'D': 0.5}
  for analysis, score in row['scores'].items():
    subgoal = advice_rows.adviser('-n-', analysis)
    assert score == pytest.approx(means[subgoal])
  with pytest.raises(ValueError, match='no stride'):
    advice_rows.table([])


def test_advice_by_hand():
  rows = [{'prompt': '-n-:'}, {'prompt': 'kK+:'}, {'prompt': 'oD+:'}]
  found, right = advice_rows.advice(rows, ['k', 'd', '?'])
  assert found[:2] == [
    {'situation': '-n-', 'subgoal': 'K'},
    {'situation': 'kK+', 'subgoal': 'D'},
  ]
  assert right == pytest.approx(2 / 3)
  with pytest.raises(ValueError, match='3 situations and 1 analyses'):
    advice_rows.advice(rows, ['k'])


def test_lessons_have_every_situation():
  found = advice_rows.lessons(0)
  assert [row['prompt'] for row in found] == [f'{x}:' for x in SITUATIONS]
  assert found == advice_rows.lessons(0) != advice_rows.lessons(1)
