"""The recurrence of generalised advantage estimation."""

import chex
import jax.numpy as jnp

from rl_jax.pieces.ops.scan import reverse_linear_scan
from rl_jax.types import Array, Trajectories


def next_kept(x_BT: Array, mask_BT: Array) -> Array:
  """x on the next trained token after t, 0 if there is none."""
  kept_BT = (mask_BT > 0).astype(jnp.float32)
  held_BT = jnp.where(mask_BT > 0, x_BT, 0.0)
  carried_BT = reverse_linear_scan(held_BT, 1.0 - kept_BT)
  return jnp.pad(carried_BT[:, 1:], ((0, 0), (0, 1)))


def lambda_advantage(
  reward_BT: Array,
  next_value_BT: Array,
  traj: Trajectories,
  gamma: Array | float,
  lam: Array | float,
) -> Array:
  """A_t = r_t + gamma V_next_t - V_t + gamma lam A_{t+1}, A = 0 at the end.

  Over trained tokens, gamma a number or [B, T]. Other tokens are passed over:
  the advantage after them is not discounted, rewards on them are dropped.
  """
  mask_BT, values_BT = traj.mask_BT, traj.values_BT
  chex.assert_equal_shape([reward_BT, next_value_BT, mask_BT, values_BT])
  kept_BT = (mask_BT > 0).astype(jnp.float32)
  delta_BT = reward_BT + gamma * next_value_BT - values_BT
  decay_BT = jnp.where(kept_BT > 0, gamma * lam, 1.0)
  return kept_BT * reverse_linear_scan(kept_BT * delta_BT, decay_BT)


def value_targets(advantage_BT: Array, traj: Trajectories) -> Array:
  """A + V on trained tokens, 0 elsewhere."""
  return jnp.where(traj.mask_BT > 0, advantage_BT + traj.values_BT, 0.0)
