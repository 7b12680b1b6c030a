"""Differences of values from step to step."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit

VALUES = np.array([[0.2, 9.0, 0.5, 9.0, 0.9], [0.4, 9.0, 9.0, 9.0, 9.0]])
MASK = np.array([[1, 1, 1, 0, 1], [1, 1, 0, 0, 0]])
STARTS = np.array([[1, 0, 1, 0, 1], [1, 0, 1, 0, 0]])
REWARD = jnp.array([1.0, 0.0])


def steps(toy, values=VALUES, segments='extras'):
  """Of two rows: three steps and one, and a start on padding."""
  traj = toy.trajectories(
    MASK,
    group_size=2,
    values_BT=values,
    extras={'segment_start_BT': STARTS},
  )
  return credit.StepAdvantage(segments=segments)(REWARD, traj)


def test_by_hand(toy):
  """.5 - .2, .9 - .5, 1 - .9; 0 - .4."""
  expected = [[0.3, 0.3, 0.4, 0, 0.1], [-0.4, -0.4, 0, 0, 0]]
  np.testing.assert_allclose(steps(toy), expected, rtol=1e-5)


def test_runs_of_tokens_are_steps_without_marks(toy):
  """The observation ends the first: .9 - .2, then 1 - .9."""
  expected = [[0.7, 0.7, 0.7, 0, 0.1], [-0.4, -0.4, 0, 0, 0]]
  np.testing.assert_allclose(steps(toy, segments='turns'), expected, rtol=1e-5)


@pytest.mark.parametrize('shift', [0.0, 3.0])
def test_the_steps_add_up(toy, shift):
  """E1: R - V(prompt) for any values; a constant critic pays the last step."""
  values = np.where(MASK > 0, VALUES + shift, 7.0)
  found = np.asarray(steps(toy, values))
  total = found[0, [0, 2, 4]].sum()
  np.testing.assert_allclose(total, 1.0 - 0.2 - shift, rtol=1e-4)
  flat = np.asarray(steps(toy, np.full(VALUES.shape, shift)))
  np.testing.assert_allclose(flat[0], [0, 0, 0, 0, 1 - shift], atol=1e-6)
