"""The filter of dynamic sampling."""

import numpy as np

from rl_jax.pieces import selection
from rl_jax.pieces.roles import CreditContext


def test_by_hand(toy):
  """Mixed is kept; all right, all wrong, and one valid row are dropped."""
  reward = np.array([[1, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 0]])
  valid = np.array([[1, 1, 1], [1, 1, 1], [1, 1, 1], [1, 0, 0]])
  traj = toy.trajectories(
    np.ones((12, 1)),
    group_size=3,
    reward_B=reward.ravel().astype(np.float32),
    valid_B=valid.ravel().astype(np.float32),
  )
  np.testing.assert_array_equal(
    selection.ZeroVariance()(CreditContext(traj.reward_B, traj)).value,
    [1, 0, 0, 0],
  )


def test_a_named_component_decides(toy):
  """Lengths differ in the second group, outcomes only in the first."""
  traj = toy.trajectories(
    np.ones((4, 1)),
    group_size=2,
    reward_B=np.array([1.0, 0.2, 0.5, 0.6]),
    rewards={'outcome': np.array([1.0, 0.0, 0.0, 0.0])},
  )
  by_total = selection.ZeroVariance()
  by_outcome = selection.ZeroVariance(component='outcome')
  np.testing.assert_array_equal(
    by_total(CreditContext(traj.reward_B, traj)).value, [1, 1]
  )
  np.testing.assert_array_equal(
    by_outcome(CreditContext(traj.reward_B, traj)).value, [1, 0]
  )


def test_order_inside_a_group_does_not_matter(toy):
  """E0."""
  reward = np.array([0.1, 0.1, 0.3, 0.1], np.float32)
  for shift in range(4):
    traj = toy.trajectories(
      np.ones((4, 1)), group_size=4, reward_B=np.roll(reward, shift)
    )
    np.testing.assert_array_equal(
      selection.ZeroVariance()(CreditContext(traj.reward_B, traj)).value, [1]
    )
