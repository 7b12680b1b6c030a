"""DAPO's dynamic sampling: groups of equal rewards are dropped."""

import jax.numpy as jnp

from rl_jax.pieces.ops.masking import by_group
from rl_jax.pieces.ops.reward_components import component
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, GroupFilter
from rl_jax.types import static


@piece
class ZeroVariance(GroupFilter):
  """Keeps a group (1) if two of its valid rewards differ, else drops it (0).

  Looks at the rewards before shaping, so that a length penalty cannot keep
  a group of equal answers; the comparison is exact.
  Source: DAPO, section 3.2; verl recipe dapo_ray_trainer.py (filter_groups),
  whose metric is the accuracy.
  """

  component: str | None = static(default=None)  # of rewards; None: reward_B
  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """Weights [N]."""
    traj = ctx.traj
    reward_B = traj.reward_B
    if self.component is not None:
      reward_B = component(self.component, traj)
    reward_NG = by_group(reward_B, traj.group_size)
    valid_NG = by_group(traj.valid_B, traj.group_size) > 0
    high_N = jnp.where(valid_NG, reward_NG, -jnp.inf).max(1)
    low_N = jnp.where(valid_NG, reward_NG, jnp.inf).min(1)
    return CreditOut((high_N > low_N).astype(jnp.float32))
