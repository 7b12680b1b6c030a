"""TW-GRPO: positions at which the group's distributions differ weigh more."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import by_group, loss_mask, ungroup
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Weight
from rl_jax.pieces.statistics.group_divergence import GroupDivergence


@piece
class GroupDivergenceWeight(Weight):
  """w_t = 1 + (alpha - 1) (D_t - min D) / (max D - min D + eps), 0 on padding.

    D_t = mean_k sum_v exp(u) - u - 1,  u = mean_j log p_jt(v) - log p_kt(v)

  D compares the rows of a group by position; min and max run over the positions
  that some row of the group still trains. No gradient (it flows through the
  weights of the released code, by omission).
  Source: "Reinforcing Video Reasoning with Focused Thinking" (TW-GRPO);
  grpo_trainer.py, which takes min and max over padding too.
  """

  alpha: float = ranged(1.7, 1.0)  # largest weight
  eps: float = ranged(1e-8, 0.0, open_low=True)
  needs = (GroupDivergence(),)
  min_group_size = 2

  def __call__(self, ctx: LossContext) -> LossOut:
    """Weights [B, T]."""
    stats, traj = ctx.stats, ctx.traj
    mask_BT = loss_mask(traj)
    live_NGT = by_group(mask_BT, traj.group_size) > 0
    live_N1T = live_NGT.any(axis=1, keepdims=True)
    # Equal in all rows of the group but 0 where a row is masked: the largest.
    value_NGT = by_group(stats['group_divergence'], traj.group_size)
    value_N1T = jnp.where(live_NGT, value_NGT, 0.0).max(axis=1, keepdims=True)
    low_N11 = jnp.where(live_N1T, value_N1T, jnp.inf).min(2, keepdims=True)
    high_N11 = jnp.where(live_N1T, value_N1T, -jnp.inf).max(2, keepdims=True)
    span_N11 = jnp.where(high_N11 > low_N11, high_N11 - low_N11, 0.0)
    excess_N1T = jnp.where(live_N1T, value_N1T - low_N11, 0.0)
    scaled_N1T = excess_N1T / (span_N11 + self.eps)
    weight_N1T = 1.0 + (self.alpha - 1.0) * scaled_N1T
    weight_BT = ungroup(weight_N1T * jnp.ones_like(value_NGT)) * mask_BT
    return LossOut(
      weight_BT, {'policy/group_divergence': stats['group_divergence']}
    )
