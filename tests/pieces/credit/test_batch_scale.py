"""Scales that all prompts share, on R = [[1, 0, 0, 0], [1, 1, 1, 0]]."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

REWARD = jnp.array([1.0, 0, 0, 0, 1, 1, 1, 0])


def record(toy, valid=None):
  """Two groups of four rows with one token each."""
  valid = np.ones(8) if valid is None else np.array(valid)
  return toy.trajectories(np.ones((8, 1)), group_size=4, valid_B=valid)


def test_batch_scale_by_hand(toy):
  """Mean 1/2, variance 2 / 7: 1 / .534522 = 1.870829; ddof 0: 2."""
  actual = credit.BatchScale()(CreditContext(REWARD, record(toy))).value
  np.testing.assert_allclose(actual, 1.870829 * REWARD, rtol=5e-6)
  actual = credit.BatchScale(ddof=0)(CreditContext(REWARD, record(toy))).value
  np.testing.assert_allclose(actual, 2 * REWARD, rtol=5e-6)
  actual = credit.BatchScale(ddof=0, eps=0.5)(
    CreditContext(REWARD, record(toy))
  ).value
  np.testing.assert_allclose(actual, REWARD, rtol=5e-6)


def test_before_centring_it_is_lite_ppo(toy):
  """.75 and .25 over .534522; hard and easy prompts have one scale."""
  traj = record(toy)
  actual = credit.GroupCenter()(
    CreditContext(credit.BatchScale()(CreditContext(REWARD, traj)).value, traj)
  ).value
  np.testing.assert_allclose(
    actual,
    [1.4031, -0.4677, -0.4677, -0.4677, 0.4677, 0.4677, 0.4677, -1.4031],
    rtol=1e-4,
  )


def test_batch_scale_sees_valid_rows_only(toy):
  """Rows 0 to 3 only: std 1/2."""
  traj = record(toy, [1, 1, 1, 1, 0, 0, 0, 0])
  actual = credit.BatchScale()(
    CreditContext(REWARD.at[4:].set(99.0), traj)
  ).value
  np.testing.assert_allclose(actual[:4], [2, 0, 0, 0], rtol=5e-6)


def test_batch_scale_removes_the_unit_of_the_reward(toy):
  """E1: seven times the reward."""
  piece, traj = credit.BatchScale(eps=1e-9), record(toy)
  np.testing.assert_allclose(
    piece(CreditContext(7 * REWARD, traj)).value,
    piece(CreditContext(REWARD, traj)).value,
    rtol=1e-5,
  )


def test_equal_rewards_end_at_zero(toy):
  """E0 after centring, although the std is 0."""
  traj = record(toy)
  scaled = credit.BatchScale()(CreditContext(jnp.full(8, 0.3), traj)).value
  np.testing.assert_array_equal(
    credit.GroupCenter()(CreditContext(scaled, traj)).value, 0
  )


def test_nonzero_scale_by_hand(toy):
  """Four of eight rewards are not 0: factor 2. Of the valid six: 6 / 3."""
  np.testing.assert_allclose(
    credit.NonzeroScale()(CreditContext(REWARD, record(toy))).value, 2 * REWARD
  )
  traj = record(toy, [1, 1, 1, 1, 1, 1, 0, 0])
  np.testing.assert_allclose(
    credit.NonzeroScale()(CreditContext(REWARD, traj)).value, 2 * REWARD
  )
  sparse = jnp.zeros(8).at[2].set(-1.0)
  np.testing.assert_allclose(
    credit.NonzeroScale()(CreditContext(sparse, record(toy))).value, 8 * sparse
  )


def test_nonzero_scale_edges(toy):
  """No zero reward: factor 1. All zero: 0, not NaN."""
  traj = record(toy)
  np.testing.assert_array_equal(
    credit.NonzeroScale()(CreditContext(REWARD + 1, traj)).value, REWARD + 1
  )
  np.testing.assert_array_equal(
    credit.NonzeroScale()(CreditContext(0 * REWARD, traj)).value, 0
  )
