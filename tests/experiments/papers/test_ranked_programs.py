"""The best of several programs."""

import pytest

from experiments.papers.worlds import ranked_programs


def row(prompt, label, score, logp):
  return {'prompt': prompt, 'label': label, 'score': score, 'logp': logp}


ROWS = [
  *(row('a', True, 2.0, -3.0), row('a', False, 1.0, -1.0)),
  *(row('b', False, 0.5, -2.0), row('b', False, 0.1, -1.0)),
  row('c', True, 9.0, 0.0),  # there is nothing to choose from
]


def test_shares_by_hand():
  assert ranked_programs.chosen(ROWS) == {
    'prompts': 2,
    'ranked': 0.5,
    'likeliest': 0.0,
    'drawn': 0.25,
    'any': 0.5,
  }


def test_the_order_and_the_scale_of_scores_change_nothing():
  other = [{**x, 'score': 10 * x['score'] - 3} for x in reversed(ROWS)]
  assert ranked_programs.chosen(other) == ranked_programs.chosen(ROWS)


def test_single_programs_are_refused():
  with pytest.raises(ValueError, match='two different programs'):
    ranked_programs.chosen(ROWS[-1:])
