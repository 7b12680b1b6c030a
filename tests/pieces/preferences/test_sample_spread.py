"""Spread of the scores of a policy's samples."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import preferences as pref
from rl_jax.pieces.roles import LossContext


def evaluate(toy, scores, sample, *, step=1.0, valid=None):
  """The value for rows of one token, in groups of four."""
  scores = np.asarray(scores, np.float32)
  ones = np.ones_like(scores)
  traj = toy.trajectories(
    ones[:, None],
    group_size=4,
    valid_B=ones if valid is None else np.asarray(valid, np.float32),
    extras={'unlabelled_B': np.asarray(sample, np.float32)},
  )
  piece = pref.SampleSpread(score=pref.FinalValue(), step=step)
  stats = {'values_after': jnp.asarray(scores[:, None])}
  return float(piece(LossContext(stats, traj)).value)


@pytest.mark.parametrize(
  ('scores', 'sample', 'expected'),
  [
    ((9, 9, 1, 0), (0, 0, 1, 1), 0.365529),  # (2 / 4) sigmoid(1)
    ((9, 1, 0, 0), (0, 1, 1, 1), 0.436026),  # (2 / 9) (2 sigmoid(1) + 1 / 2)
    ((9, 9, 9, 1), (0, 0, 0, 1), 0.0),  # a single one has no partner
  ],
)
def test_by_hand(toy, scores, sample, expected):
  assert evaluate(toy, scores, sample) == pytest.approx(expected, abs=1e-6)


def test_prompts_without_two_samples_count_nowhere(toy):
  """The mean is over prompts that have a pair."""
  scores = [9, 9, 1, 0, 5, 5, 5, 5]
  found = evaluate(toy, scores, [0, 0, 1, 1, 0, 0, 0, 1])
  assert found == pytest.approx(0.365529, abs=1e-6)


def test_the_step_is_a_factor(toy):
  found = evaluate(toy, (9, 9, 1, 0), (0, 0, 1, 1), step=0.1)
  assert found == pytest.approx(0.0365529, abs=1e-7)


def test_only_differences_of_samples_count(toy):
  """E1: numbers added to all scores, other labelled rows, and the order."""
  first = evaluate(toy, (9, 9, 1, 0), (0, 0, 1, 1))
  assert evaluate(toy, (2, -3, 6, 5), (0, 0, 1, 1)) == pytest.approx(first)
  assert evaluate(toy, (0, 9, 9, 1), (1, 0, 0, 1)) == pytest.approx(first)


def test_invalid_samples_count_nowhere(toy):
  found = evaluate(toy, (9, 7, 1, 0), (0, 1, 1, 1), valid=(1, 0, 1, 1))
  assert found == pytest.approx(0.365529, abs=1e-6)
