"""Votes and measures of samples that a cosine discards."""

import numpy as np
import pytest

from experiments.papers.preferences import goal_filter


def row(prompt, answer, label):
  return {'prompt': prompt, 'completion': f'1>{answer}', 'label': label}


ROWS = [
  *(row('a', '7', True), row('a', '8', False), row('a', '8', False)),
  *(row('b', '5', True), row('b', '6', False), row('b', '5', True)),
]


@pytest.mark.parametrize(
  'stays, share',
  [
    ([1, 1, 1, 1, 1, 1], 0.5),
    ([1, 0, 0, 1, 1, 1], 1.0),
    ([1, 1, 0, 1, 1, 0], 1.0),  # of equally frequent answers the first
    ([0, 0, 0, 0, 1, 0], 0.0),  # nothing is said of the first prompt
  ],
)
def test_votes_by_hand(stays, share):
  assert goal_filter.voted(ROWS, np.array(stays, bool), '>') == share


def test_measures_by_hand():
  """The right samples of `a` have 0.5 at token 5, the wrong ones 0.1; of the
  three of `b` one wrong sample of six tokens is discarded before the sixth.
  """
  cosine = np.full((6, 6), 0.9)
  cosine[:, 5] = [0.5, 0.1, 0.1, 0.6, 0.4, 0.7]
  mask = np.ones((6, 6), bool)
  found = goal_filter.measured(
    ROWS, cosine, mask, share=0.0, kept=1.0, mark='>'
  )
  assert found == {
    **{'auroc_25': 0.5, 'auroc_50': 0.5, 'auroc_75': 0.5, 'auroc_100': 1.0},
    **{'threshold': 0.5, 'drawn': pytest.approx(2 / 3), 'kept': 1.0},
    **{'stays': 1.0, 'saved': pytest.approx(1 / 18)},
    **{'vote': 1.0, 'filtered_vote': 1.0, 'best': 1.0},
  }


def test_best_of_by_hand():
  """Right in `a`, wrong in `b`; of equal scores the first counts, so that with
  one score for all the first sample of each prompt is chosen.
  """
  scores = np.array([0.5, 0.4, -0.9, 0.1, 0.2, 0.15])
  assert goal_filter.best_of(ROWS, scores) == 0.5
  assert goal_filter.best_of(ROWS, -scores) == 0.5
  assert goal_filter.best_of(ROWS, np.zeros(6)) == 1.0
  # E0: the order of the scores counts, and nothing else.
  assert goal_filter.best_of(ROWS, 3 * scores - 7) == 0.5


def test_one_prompt_is_refused():
  with pytest.raises(ValueError, match='one prompt only'):
    goal_filter.measured(
      ROWS[:3],
      np.ones((3, 6)),
      np.ones((3, 6), bool),
      share=0.0,
      kept=1.0,
      mark='>',
    )
