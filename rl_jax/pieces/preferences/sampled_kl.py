"""HyPO's company: the KL to the reference on the policy's own samples."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import (
  by_group,
  masked_mean,
  masked_sum,
  safe_divide,
)
from rl_jax.pieces.ops.sequences import mean_over_groups, row_weight
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer


@piece
class SampledKL(Regularizer):
  """coef * mean over groups of 1/k sum_j (c_j - b_j) S_j, c = S - S_ref.

  Over the k rows of a group that the policy has sampled, not over rows from
  data; c and the baseline b_j, the mean of the other c, have no gradient. S
  sums the log-probs of a row. The gradient is that of coef KL(pi || pi_ref).
  Groups with fewer than two such rows count nowhere.
  Source: HyPO, "The Importance of Online Data: Understanding Preference
  Fine-tuning via Coverage"; the surrogate is reconstructed.
  """

  coef: float = ranged(1e-4, 0.0)  # lambda of the paper
  aggregation: Any = None  # a scalar loss is not aggregated
  per_group = True
  needs = ('logp_ref',)
  min_group_size = 2

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    sum_B = masked_sum(ctx.stats['logp'], traj.mask_BT, axis=1)
    ref_B = masked_sum(traj.logp_ref_BT, traj.mask_BT, axis=1)
    weight_B = row_weight(traj) * row_inputs.sampled_B(traj)
    sum_NG, ref_NG, weight_NG = (
      by_group(x, traj.group_size) for x in (sum_B, ref_B, weight_B)
    )
    live_NG = (weight_NG != 0).astype(jnp.float32)
    count_N1 = live_NG.sum(1, keepdims=True)
    live_NG = live_NG * (count_N1 > 1)
    ratio_NG = jax.lax.stop_gradient(sum_NG - ref_NG)
    others_NG = masked_sum(ratio_NG, live_NG, axis=1, keepdims=True) - ratio_NG
    base_NG = safe_divide(others_NG, count_N1 - 1.0)
    loss_N = masked_mean((ratio_NG - base_NG) * sum_NG, live_NG, axis=1)
    kl = mean_over_groups(
      masked_mean(ratio_NG, live_NG, axis=1), live_NG.ravel()
    )
    loss = self.coef * mean_over_groups(loss_N, live_NG.ravel())
    return LossOut(loss, {'policy/kl_sampled': kl})
