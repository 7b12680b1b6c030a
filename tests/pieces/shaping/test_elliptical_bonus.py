"""RepExp's leverage of three mean hidden states in a group."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext

H = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


def group(toy, hidden=H, reward=(1, 0, 0), **fields):
  """One group with one token a row."""
  B = len(hidden)
  return toy.trajectories(
    np.ones((B, 1)),
    group_size=B,
    reward_B=np.asarray(reward, np.float32),
    extras={'hidden': np.asarray(hidden)[:, None]},
    **fields,
  )


def test_by_hand(toy):
  """x = (1/3, -1/3) twice and (-2/3, 2/3), all on one line: leverage
  (2/9) / (12/9 + .01) = .16543 and (8/9) / 1.34333 = .66170; b / (1 - b)."""
  traj = group(toy)
  leverage = shaping.EllipticalBonus(ridge=0.01)._bonus(traj)
  np.testing.assert_allclose(
    leverage, [[0.165426, 0.165426, 0.661704]], rtol=1e-4
  )
  apart = shaping.EllipticalBonus(ridge=0.01, kind='leave_one_out')._bonus(traj)
  np.testing.assert_allclose(apart, [[0.198217, 0.198217, 1.955990]], rtol=1e-3)


def test_equals_the_formula_in_feature_space(toy):
  """E1: x' (ridge I + sum x x')^-1 x in float64, five sizes, six rows."""
  hidden = np.random.RandomState(0).normal(size=(6, 5))
  x = hidden - hidden.mean(0)
  inverse = np.linalg.inv(0.3 * np.eye(5) + x.T @ x)
  expected = np.einsum('gd,de,ge->g', x, inverse, x)
  traj = group(toy, hidden, reward=np.ones(6))
  actual = shaping.EllipticalBonus(ridge=0.3)._bonus(traj)
  np.testing.assert_allclose(actual[0], expected, rtol=2e-5)


def test_reward_gains_only_in_solved_groups(toy):
  """coef 2 on the leverage, and nothing if no row is right."""
  piece = shaping.EllipticalBonus(coef=2.0)
  reward = jnp.array([1.0, 0.0, 0.0])
  np.testing.assert_allclose(
    piece(CreditContext(reward, group(toy))).value,
    [1.330852, 0.330852, 1.323408],
    rtol=1e-4,
  )
  np.testing.assert_array_equal(
    piece(CreditContext(0 * reward, group(toy, reward=(0, 0, 0)))).value, 0
  )


def test_reductions(toy):
  """coef 0 is GRPO; equal responses have no bonus. Both E0."""
  reward = jnp.array([1.0, 0.0, 0.0])
  off = shaping.EllipticalBonus(coef=0.0)
  np.testing.assert_array_equal(
    off(CreditContext(reward, group(toy))).value, reward
  )
  same = group(toy, np.tile([[0.3, 1 / 3]], (3, 1)))
  np.testing.assert_array_equal(shaping.EllipticalBonus()._bonus(same), 0)


def test_rotations_shifts_and_invalid_rows(toy):
  """E1: the frame of the hidden space does not matter; an invalid row is as if
  it were not there."""
  piece, turn = shaping.EllipticalBonus(), np.array([[0.6, -0.8], [0.8, 0.6]])
  expected = piece._bonus(group(toy))
  np.testing.assert_allclose(
    piece._bonus(group(toy, H @ turn + 3.0)), expected, rtol=1e-4
  )
  more = np.concatenate([H, [[9.0, -7.0]]])
  valid = np.array([1.0, 1, 1, 0])
  actual = piece._bonus(group(toy, more, (1, 0, 0, 0), valid_B=valid))
  np.testing.assert_allclose(actual[:, :3], expected, rtol=1e-4)
  np.testing.assert_array_equal(actual[:, 3], 0)


@pytest.mark.parametrize('width', [16, 128, 896])
def test_float32_keeps_the_differences_of_a_group(toy, width):
  """Eight rows of large hidden states: b is 0.875 but for differences below
  1e-5. What it lacks is within 1e-3 of that in float64, where the rows differ
  by more than a tenth of it; b itself within float32 rounding."""
  hidden = np.random.RandomState(width).normal(size=(8, width)) * 3 + 5
  x = hidden - hidden.mean(0)
  gram = x @ x.T
  expected = np.diag(np.linalg.solve(gram + 0.01 * np.eye(8), gram))
  lacking = 0.875 - expected
  assert np.ptp(lacking) > 0.1 * lacking.mean()
  traj = group(toy, hidden, reward=np.ones(8))
  alone, lost = shaping.EllipticalBonus(ridge=0.01)._lost(traj)
  np.testing.assert_array_equal(alone, np.full((1, 8), 0.125))
  np.testing.assert_allclose(lost[0], lacking, rtol=1e-3)
  found = shaping.EllipticalBonus(ridge=0.01)._bonus(traj)[0]
  np.testing.assert_allclose(found, expected, rtol=0, atol=1.2e-7)
  one = shaping.EllipticalBonus(ridge=0.01, kind='leave_one_out')
  found = one._bonus(traj)[0]
  np.testing.assert_allclose(found, expected / (1 - expected), rtol=2e-6)
