"""Balanced online difficulty filtering: neither too easy nor too hard."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import ROUNDING, by_group, masked_mean
from rl_jax.pieces.ops.reward_components import component
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, GroupFilter
from rl_jax.types import static


@piece
class AccuracyBand(GroupFilter):
  """Keeps a group (1) if low <= mean reward <= high, else drops it (0).

  The mean is over valid rows, of the unshaped reward or of one component, and
  its float32 rounding drops no group; one without a valid row is dropped.
  high = 1 - low is the balanced filter.
  Source: "Online Difficulty Filtering for Reasoning Oriented Reinforcement
  Learning", from the abstract and an overview.
  """

  low: float = ranged(0.25, 0.0, 1.0)  # share of right samples
  high: float = ranged(0.75, 0.0, 1.0)
  component: str | None = static(default=None)  # of rewards; None: reward_B

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """Weights [N]."""
    traj = ctx.traj
    reward_B = traj.reward_B
    if self.component is not None:
      reward_B = component(self.component, traj)
    valid_NG = by_group(traj.valid_B, traj.group_size)
    mean_N = masked_mean(by_group(reward_B, traj.group_size), valid_NG, axis=1)
    inside_N = (mean_N >= self.low - ROUNDING) & (
      mean_N <= self.high + ROUNDING
    )
    return CreditOut((inside_N & (valid_NG.sum(1) > 0)).astype(jnp.float32))
