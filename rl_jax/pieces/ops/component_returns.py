"""Advantages of reward components and of the divergence, by their critics."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from rl_jax.pieces.ops.masking import (
  at_last_token,
  by_group,
  masked_center,
  ungroup,
)
from rl_jax.pieces.ops.returns import lambda_advantage, next_kept
from rl_jax.pieces.ops.reward_components import called, component
from rl_jax.types import Array, Trajectories


def check_components(names: Sequence[str], traj: Trajectories) -> None:
  """Raises ValueError naming the components that the task does not return."""
  missing = sorted(n for n in set(names) if called(n, traj.rewards) is None)
  if missing:
    raise ValueError(
      f'components {missing} are missing: the task returns '
      f'{sorted(traj.rewards)}'
    )


def divergence(traj: Trajectories) -> Array:
  """-(logp_old - logp_ref) on trained tokens, nats, [B, T]."""
  gap_BT = traj.logp_old_BT - traj.logp_ref_BT
  return jnp.where(traj.mask_BT > 0, -gap_BT, 0.0)


def group_differences(names: Sequence[str], traj: Trajectories) -> Array:
  """Each component minus its group mean, last the summed divergence: [B, H]."""
  rewards = [component(name, traj) for name in names]
  reward_BH = jnp.stack([*rewards, divergence(traj).sum(axis=1)], axis=-1)
  valid_NG1 = by_group(traj.valid_B, traj.group_size)[..., None]
  reward_NGH = by_group(reward_BH, traj.group_size)
  valid_NGH = jnp.broadcast_to(valid_NG1, reward_NGH.shape)
  return ungroup(masked_center(reward_NGH, valid_NGH, axis=1))


def component_advantages(
  names: Sequence[str],
  traj: Trajectories,
  gamma: Array | float,
  lam: Array | float,
) -> Array:
  """GAE of each component and, last, of `divergence`: [B, T, H].

  A component is the reward on the last trained token. Output h of the value
  head is the baseline of advantage h.
  """
  check_components(names, traj)

  def last(name: str):
    return at_last_token(component(name, traj), traj.mask_BT)

  reward_BTH = jnp.stack([*map(last, names), divergence(traj)], axis=-1)

  def one(reward_BT: Array, values_BT: Array):
    rows = traj.replace(values_BT=values_BT)
    next_BT = next_kept(values_BT, traj.mask_BT)
    return lambda_advantage(reward_BT, next_BT, rows, gamma, lam)

  return jax.vmap(one, in_axes=-1, out_axes=-1)(reward_BTH, traj.values_BTH)
