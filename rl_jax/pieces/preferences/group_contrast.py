"""GEPO: a group of winners against a group of losers."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.edges import losers, winners
from rl_jax.pieces.ops.masking import (
  by_group,
  masked_mean,
  masked_sum,
  masked_var,
)
from rl_jax.pieces.ops.sequences import mean_over_groups
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.types import static


@piece
class GroupContrast(Loss):
  """L = coef mean over groups of G + c var_win D.

    G = -ls(beta (mean_win D - mean_lose D)), c = variance

  D is the sum of logp - logp_ref over a row's trained tokens; winners are the
  rows that win an edge, losers those that lose one. Their variance (ddof 0)
  ties equivalent winners together. One winner and one loser: DPO. With
  data_only only groups of recorded responses count, beside samples that other
  losses train on (weights.SampledRows).
  Source: "Group Equivalent Preference Optimization" (GEPO), read in paper by a
  digest; that D and not beta D is penalised is inferred there.
  """

  beta: float = ranged(0.1, 0.0, open_low=True)
  variance: float = ranged(1.0, 0.0)  # lambda of the paper, per nat squared
  coef: float = ranged(1.0, 0.0)
  data_only: bool = static(default=False)
  aggregation: Any = None  # a scalar loss is not aggregated
  per_group = True
  needs = ('logp_ref',)
  min_group_size = 2
  off_policy = True

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if only rows of data count, and none are read."""
    rollout = context.rollout
    if self.data_only and rollout is not None and not rollout.recorded_prompts:
      raise ValueError(
        'GroupContrast.data_only = True reads recorded groups, and '
        'rollout.recorded_prompts = 0: set it, as in '
        'configs/worlds/equivalent_chains.py'
      )

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    ratio_B = masked_sum(
      ctx.stats['logp'] - traj.logp_ref_BT, traj.mask_BT, axis=1
    )
    ratio_NG, win_NG, lose_NG = (
      by_group(x, traj.group_size)
      for x in (ratio_B, winners(traj), losers(traj))
    )
    if self.data_only:
      recorded_NG = by_group(1.0 - row_inputs.sampled_B(traj), traj.group_size)
      win_NG, lose_NG = win_NG * recorded_NG, lose_NG * recorded_NG
    gap_N = masked_mean(ratio_NG, win_NG, axis=1)
    gap_N -= masked_mean(ratio_NG, lose_NG, axis=1)
    spread_N = masked_var(ratio_NG, win_NG, axis=1)
    loss_N = self.variance * spread_N - jax.nn.log_sigmoid(self.beta * gap_N)
    live_B = jnp.maximum(win_NG, lose_NG).ravel()
    return LossOut(
      self.coef * mean_over_groups(loss_N, live_B),
      {
        'preference/margin': self.beta * mean_over_groups(gap_N, live_B),
        'preference/winner_variance': mean_over_groups(spread_N, live_B),
      },
    )
