"""Reg-GRPO: standardised log-ratios of a group are fitted to its advantages."""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import (
  by_group,
  masked_center,
  masked_mean,
  masked_var,
)
from rl_jax.pieces.ops.sequences import (
  exact_log_ratio,
  mean_over_groups,
  row_credit,
  row_weight,
)
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class GroupRegression(Loss):
  """L = mean over groups of mean_i (A_i - z_i)^2.

    z_i = (u_i - mean u) / sqrt(var u + eps)
    u_i = sum over the row's trained tokens of logp - logp_old

  A is the row's credit: centred and divided by the group's population standard
  deviation. The variance (ddof 0) is over the group. eps bounds the gradient at
  u = 0, the first step of every rollout. Groups without credit are skipped.
  Source: "DeepVideo-R1: Video Reinforcement Fine-Tuning via Difficulty-aware
  Regressive GRPO" (formulas in words; length normalisation unverified).
  """

  eps: float = ranged(1e-2, 0.0, open_low=True)  # nats squared
  aggregation: Any = None  # a scalar loss is not aggregated
  min_group_size = 2
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    logp_BT, mask_BT = ctx.stats['logp'], traj.mask_BT
    chex.assert_equal_shape([logp_BT, traj.logp_old_BT, mask_BT])
    score_B = exact_log_ratio(logp_BT, traj.logp_old_BT, mask_BT)
    score_NG = by_group(score_B, traj.group_size)
    target_NG = by_group(row_credit(traj), traj.group_size)
    taught_N1 = (target_NG != 0).any(1, keepdims=True).astype(jnp.float32)
    weight_NG = by_group(row_weight(traj), traj.group_size) * taught_N1
    centered_NG = masked_center(score_NG, weight_NG, axis=1)
    var_N1 = masked_var(score_NG, weight_NG, axis=1, keepdims=True)
    fitted_NG = centered_NG * jax.lax.rsqrt(var_N1 + self.eps)
    error_N = masked_mean((target_NG - fitted_NG) ** 2, weight_NG, axis=1)
    loss = mean_over_groups(error_N, weight_NG.ravel())
    return LossOut(loss, {'policy/regression_error': loss})
