"""EMPO's reward on clusters of 4, 2 and 1 of seven samples."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import credit, shaping
from rl_jax.pieces.roles import CreditContext


def reward(toy, ids, valid=None):
  """The reward of one group."""
  B = len(ids)
  traj = toy.trajectories(
    np.ones((B, 1)),
    group_size=B,
    valid_B=np.ones(B, np.float32) if valid is None else np.array(valid),
    extras={'cluster_id_B': np.asarray(ids)},
  )
  return traj, shaping.ClusterFrequency()(
    CreditContext(jnp.zeros(B), traj)
  ).value


def test_by_hand(toy):
  """R = 4/7, 2/7, 1/7 and, with std ddof 1 and eps 1e-4, the A of the paper:
  mean 3/7, deviations 1, -1, -2 sevenths, std sqrt(10/6)/7."""
  traj, R = reward(toy, [5, 5, 5, 5, 8, 8, 1])
  np.testing.assert_allclose(R * 7, [4, 4, 4, 4, 2, 2, 1], rtol=1e-6)
  A = credit.GroupScale(eps=1e-4)(
    CreditContext(credit.GroupCenter()(CreditContext(R, traj)).value, traj)
  ).value
  expected = [0.77418] * 4 + [-0.77418] * 2 + [-1.54835]
  np.testing.assert_allclose(A, expected, rtol=2e-5)


def test_all_different_or_missing_is_nothing(toy):
  """No agreement, no reward; missing answers count but never earn."""
  np.testing.assert_array_equal(reward(toy, [1, 2, 3])[1], 0)
  np.testing.assert_allclose(reward(toy, [-1, 4, -2, 4])[1], [0, 0.5, 0, 0.5])
  alone = reward(toy, [-1, -1, 3])[1]
  np.testing.assert_allclose(alone, [0, 0, 1 / 3], rtol=1e-6)


def test_invalid_rows_leave_the_counts(toy):
  """Two of three valid rows agree; the invalid one gets nothing."""
  _, R = reward(toy, [1, 1, 2, 1], valid=[1, 1, 1, 0])
  np.testing.assert_allclose(R, [2 / 3, 2 / 3, 1 / 3, 0], rtol=1e-6)


def test_the_mean_reward_is_the_collision_probability(toy):
  """sum p^2 = (9 + 1) / 16, whatever the order and the names. E1."""
  for ids in ([0, 0, 0, 1], [7, 2, 2, 2]):
    np.testing.assert_allclose(reward(toy, ids)[1].mean(), 10 / 16, rtol=1e-6)
