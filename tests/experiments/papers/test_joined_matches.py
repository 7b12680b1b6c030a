"""Scores against a drawn response, and what they do to pairs."""

import pytest

from experiments.papers.preferences import joined_matches, rejection_pairs
from rl_jax.tasks import JoinedPairs
from rl_jax.worlds import Motifs

ROW = {'prompt': 'x', 'chosen': ['b'], 'rejected': ['a', 'c']}


def test_both_orders_are_those_of_the_task():
  """E0: chosen before the separator, as a model of pairs was trained."""
  (found,) = joined_matches.matches([ROW], '|')
  assert found == {
    'prompt': 'x',
    'chosen': ['a|b', 'c|b'],
    'rejected': ['b|a', 'b|c'],
  }
  task = JoinedPairs(Motifs(), separator='|')
  example = task.example('train', 0)
  one, two = (x.text for x in task.task.recorded(example))
  (found,) = joined_matches.matches(
    [{'prompt': 'x', 'chosen': two, 'rejected': one}], '|'
  )
  joined = [x.text for x in task.recorded(example)]
  assert [*found['chosen'], *found['rejected']] == joined
  assert set('|'.join(joined)) <= set(task.alphabet)


def values(gap, rows=(ROW,)):
  """The file of values of a model with V(a, b) = gap[a, b]."""
  return [
    {
      'scores': [
        gap[tuple(text.split('|'))]
        for side in ('chosen', 'rejected')
        for text in row[side]
      ]
    }
    for row in joined_matches.matches(rows, '|')
  ]


def test_scores_by_hand():
  """r = V(y, rival) - V(rival, y); the rival has 0."""
  gap = {('a', 'b'): 2.0, ('b', 'a'): -1.0, ('c', 'b'): 0.5, ('b', 'c'): 1.5}
  (found,) = joined_matches.scores([ROW], values(gap))
  assert found['responses'] == ['b', 'a', 'c']
  assert found['scores'] == [0.0, 3.0, -1.0]


def ordered(gap, beta, rows=(ROW,)):
  """Pairs by the scores against the rival, and then by their own match."""
  scored = list(joined_matches.scores(rows, values(gap, rows)))
  first = list(rejection_pairs.pairs(scored, beta, 2, 0))
  own = list(joined_matches.scores(first, values(gap, first)))
  last = list(rejection_pairs.pairs(own, 0.5, 2, 0))
  return [
    [(row['chosen'], row['rejected']) for row in found]
    for found in (first, last)
  ]


def test_a_pair_is_ordered_by_its_own_match():
  """c beats a, although a has the larger score against the rival b."""
  gap = {
    **{('a', 'b'): 3.0, ('b', 'a'): 0.0},
    **{('c', 'b'): 1.0, ('b', 'c'): 0.0},
    **{('c', 'a'): 2.0, ('a', 'c'): 0.0},
  }
  assert ordered(gap, 0.0) == [[('a', 'c')], [('c', 'a')]]


def test_a_model_of_single_texts_is_the_simpler_form():
  """E0: with V(a, b) = s_a the pairs are those of the scores s, and what is
  added to all values of a prompt changes nothing.
  """
  single = dict(zip('abcdef', (0.0, 1.5, -2.0, 4.0, 0.5, 3.0), strict=True))
  row = {'prompt': 'x', 'chosen': ['a'], 'rejected': list('bcdef')}
  rows = [row] * 4
  plain = [
    {'prompt': 'x', 'responses': list('abcdef'), 'scores': [*single.values()]}
  ] * 4
  expected = [
    (x['chosen'], x['rejected'])
    for x in rejection_pairs.pairs(plain, 1.0, 2, 0)
  ]
  for shift in (0.0, 8.0):
    gap = {(a, b): single[a] + shift for a in single for b in single if a != b}
    first, last = ordered(gap, 1.0, rows)
    assert first == expected and last == expected


@pytest.mark.parametrize(
  ('row', 'message'),
  [
    ({**ROW, 'chosen': 'b|'}, r"row 1: the texts \['b|', 'a', 'c'\]"),
    ({**ROW, 'rejected': []}, r"row 1: the texts \['b'\], expected two"),
  ],
)
def test_texts_that_cannot_be_joined(row, message):
  with pytest.raises(ValueError, match=message):
    list(joined_matches.matches([row], '|'))


def test_values_of_other_rows():
  with pytest.raises(ValueError, match='1 rows, and values of 0'):
    list(joined_matches.scores([ROW], []))
  with pytest.raises(ValueError, match='row 1: 2 values, expected 4'):
    list(joined_matches.scores([ROW], [{'scores': [1.0, 2.0]}]))
