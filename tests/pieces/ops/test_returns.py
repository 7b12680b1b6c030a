"""The recurrence of advantages across masked tokens."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces.ops import returns

MASK = np.array([[1, 1, 0, 0, 1, 1, 1, 0]])


def test_next_kept_looks_across_gaps():
  """After column 1 comes column 4; after the last nothing."""
  x = jnp.arange(1.0, 9.0)[None]
  np.testing.assert_array_equal(
    returns.next_kept(x, MASK), [[2, 5, 5, 5, 6, 7, 0, 0]]
  )


def test_advantages_by_hand(toy):
  """gamma = lam = 1/2 over V = 2, 4 with a masked token between and after.

  A_2 = 8 - 4 = 4; A_0 = 1 + 2 - 2 + 4 / 4 = 2; the reward of column 1 is
  dropped. Targets are A + V.
  """
  mask = np.array([[1.0, 0, 1, 0]])
  values = jnp.array([[2.0, 9, 4, 9]])
  traj = toy.trajectories(mask, group_size=1, values_BT=values)
  reward = jnp.array([[1.0, 9, 8, 9]])
  following = returns.next_kept(values, traj.mask_BT)
  found = returns.lambda_advantage(reward, following, traj, 0.5, 0.5)
  np.testing.assert_array_equal(found, [[2, 0, 4, 0]])
  np.testing.assert_array_equal(
    returns.value_targets(found, traj), [[4, 0, 8, 0]]
  )
