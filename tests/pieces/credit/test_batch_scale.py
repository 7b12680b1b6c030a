"""Scales that all prompts share, on R = [[1, 0, 0, 0], [1, 1, 1, 0]]."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit

REWARD = jnp.array([1.0, 0, 0, 0, 1, 1, 1, 0])


def record(toy, valid=None):
  """Two groups of four rows with one token each."""
  valid = np.ones(8) if valid is None else np.array(valid)
  return toy.trajectories(np.ones((8, 1)), group_size=4, valid_B=valid)


def test_batch_scale_by_hand(toy):
  """Mean 1/2, variance 2 / 7: 1 / .534522 = 1.870829; ddof 0: 2."""
  actual = credit.BatchScale()(REWARD, record(toy))
  np.testing.assert_allclose(actual, 1.870829 * REWARD, rtol=5e-6)
  actual = credit.BatchScale(ddof=0)(REWARD, record(toy))
  np.testing.assert_allclose(actual, 2 * REWARD, rtol=5e-6)
  actual = credit.BatchScale(ddof=0, eps=0.5)(REWARD, record(toy))
  np.testing.assert_allclose(actual, REWARD, rtol=5e-6)


def test_before_centring_it_is_lite_ppo(toy):
  """.75 and .25 over .534522; hard and easy prompts have one scale."""
  traj = record(toy)
  actual = credit.GroupCenter()(credit.BatchScale()(REWARD, traj), traj)
  np.testing.assert_allclose(
    actual,
    [1.4031, -0.4677, -0.4677, -0.4677, 0.4677, 0.4677, 0.4677, -1.4031],
    rtol=1e-4,
  )


def test_batch_scale_sees_valid_rows_only(toy):
  """Rows 0 to 3 alone: std 1/2."""
  traj = record(toy, [1, 1, 1, 1, 0, 0, 0, 0])
  actual = credit.BatchScale()(REWARD.at[4:].set(99.0), traj)
  np.testing.assert_allclose(actual[:4], [2, 0, 0, 0], rtol=5e-6)


def test_batch_scale_removes_the_unit_of_the_reward(toy):
  """E1: seven times the reward."""
  piece, traj = credit.BatchScale(eps=1e-9), record(toy)
  np.testing.assert_allclose(
    piece(7 * REWARD, traj), piece(REWARD, traj), rtol=1e-5
  )


def test_equal_rewards_end_at_zero(toy):
  """E0 after centring, although the std is 0."""
  traj = record(toy)
  scaled = credit.BatchScale()(jnp.full(8, 0.3), traj)
  np.testing.assert_array_equal(credit.GroupCenter()(scaled, traj), 0)


def test_nonzero_scale_by_hand(toy):
  """Four of eight rewards are not 0: factor 2. Of the valid six: 6 / 3."""
  np.testing.assert_allclose(
    credit.NonzeroScale()(REWARD, record(toy)), 2 * REWARD
  )
  traj = record(toy, [1, 1, 1, 1, 1, 1, 0, 0])
  np.testing.assert_allclose(credit.NonzeroScale()(REWARD, traj), 2 * REWARD)
  sparse = jnp.zeros(8).at[2].set(-1.0)
  np.testing.assert_allclose(
    credit.NonzeroScale()(sparse, record(toy)), 8 * sparse
  )


def test_nonzero_scale_edges(toy):
  """No zero reward: factor 1. All zero: 0, not NaN."""
  traj = record(toy)
  np.testing.assert_array_equal(
    credit.NonzeroScale()(REWARD + 1, traj), REWARD + 1
  )
  np.testing.assert_array_equal(credit.NonzeroScale()(0 * REWARD, traj), 0)


def test_fields_are_checked():
  """Names the field."""
  with pytest.raises(ValueError, match='BatchScale.eps = 0'):
    credit.BatchScale(eps=0.0)
