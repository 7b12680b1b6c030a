"""A linear map of the reward."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import shaping
from rl_jax.pieces.roles import CreditContext


def test_by_hand(toy):
  """2 R - 1: 0, 1, 1/2 become -1, 1, 0."""
  traj = toy.trajectories(np.ones((3, 1)), group_size=3)
  reward = jnp.array([0.0, 1.0, 0.5])
  signed = shaping.Affine(scale=2.0, offset=-1.0)
  np.testing.assert_array_equal(
    signed(CreditContext(reward, traj)).value, [-1, 1, 0]
  )
  np.testing.assert_array_equal(
    shaping.Affine()(CreditContext(reward, traj)).value, reward
  )
