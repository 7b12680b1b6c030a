"""P3O: clipped policy gradients on pairs of answers to one prompt."""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.masking import by_group, masked_mean, masked_sum
from rl_jax.pieces.ops.ratios import clipped_surrogate
from rl_jax.pieces.ops.sequences import (
  mean_over_groups,
  pair_weights,
  row_credit,
  row_weight,
  summed_log_ratio,
)
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class P3O(Loss):
  """Mean over groups and over pairs i, j of a pair loss.

    w_i = product of pi / pi_old over row i, r_i its credit, no baseline
    'separate' (V1): -1/2 [f((r_i - r_j) w_j, w_i) + f((r_j - r_i) w_i, w_j)]
       f(c, w) = min(sg[c] w, sg[c] clip(w, 1 - clip_low, 1 + clip_high))
    'joint' (V2), r_i > r_j: -sg[w_i w_j (r_i - r_j) / 2] (h_i - h_j), and 0
       where w_i w_j > 1 + clip_high; h = logp of the whole row

  With one update and groups of two both are RLOO; a constant added to the
  rewards of a prompt changes nothing.
  Source: "Pairwise Proximal Policy Optimization: Harnessing Relative Feedback
  for LLM Alignment". The clip forms are reconstructed: the printed ones were
  not read; 'joint' orders a pair by reward, so that it has no first answer.
  """

  variant: str = chosen('separate', ('separate', 'joint'))
  clip_low: float = ranged(0.2, 0.0, 1.0)
  clip_high: float = ranged(0.2, 0.0)
  aggregation: Any = None  # a scalar loss is not aggregated
  min_group_size = 2
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    logp_BT, mask_BT = ctx.stats['logp'], traj.mask_BT
    chex.assert_equal_shape([logp_BT, traj.logp_old_BT, mask_BT])
    G = traj.group_size
    log_w_B = summed_log_ratio(logp_BT, traj.logp_old_BT, mask_BT)
    ratio_NG = by_group(jnp.exp(log_w_B), G)
    fixed_NG = jax.lax.stop_gradient(ratio_NG)
    reward_NG = by_group(row_credit(traj), G)
    gap_NGG = reward_NG[:, :, None] - reward_NG[:, None, :]
    weight_B = row_weight(traj)
    pair_NGG = pair_weights(by_group(weight_B, G))
    if self.variant == 'separate':
      push_NGG = gap_NGG * fixed_NG[:, None, :]
      own_NGG = jnp.broadcast_to(ratio_NG[:, :, None], push_NGG.shape)
      loss_NGG = clipped_surrogate(
        own_NGG, push_NGG, self.clip_low, self.clip_high
      )
    else:
      joint_NGG = fixed_NG[:, :, None] * fixed_NG[:, None, :]
      inside_NGG = (gap_NGG > 0) & (joint_NGG <= 1.0 + self.clip_high)
      score_NG = by_group(masked_sum(logp_BT, mask_BT, axis=1), G)
      step_NGG = score_NG[:, :, None] - score_NG[:, None, :]
      # Only the order with r_i > r_j counts, so that 1/2 becomes 1 below.
      loss_NGG = -jnp.where(inside_NGG, joint_NGG * gap_NGG, 0.0) * step_NGG
    loss_N = masked_mean(loss_NGG, pair_NGG, axis=(1, 2))
    loss = mean_over_groups(loss_N, weight_B)
    return LossOut(loss, {'policy/pair_loss': loss})
