"""GMPO: the geometric mean of a row's clipped token ratios."""

from typing import Any

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import masked_mean
from rl_jax.pieces.ops.ratios import log_ratio
from rl_jax.pieces.ops.sequences import row_credit
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class GMPO(Loss):
  """l_t = -mean(A) exp(mean of d'_t), the same value on all tokens of a row.

    d_t = logp_t - logp_old_t, within +-20 nats
    d'_t = min(d_t, log_clip_high) where A > 0, max(d_t, -log_clip_low) where
           A < 0: the clip of each token, in log space

  Means are over the row's trained tokens, so the loss is one value per row.
  Source: "Geometric-Mean Policy Optimization"; verl core_algos.py (geo_mean).
  """

  log_clip_low: float = ranged(0.4, 0.0)  # nats
  log_clip_high: float = ranged(0.4, 0.0)  # nats
  aggregation: Any = None  # overrides the method's
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj, logp_BT, adv_BT = ctx.policy_tokens()
    change_BT = log_ratio(logp_BT, traj.logp_old_BT, traj.mask_BT)
    above_BT = (adv_BT > 0) & (change_BT > self.log_clip_high)
    below_BT = (adv_BT < 0) & (change_BT < -self.log_clip_low)
    # A `where`, because jnp.clip has gradient 1/2 on its edge.
    held_BT = jnp.where(above_BT, self.log_clip_high, change_BT)
    held_BT = jnp.where(below_BT, -self.log_clip_low, held_BT)
    mean_B = masked_mean(held_BT, traj.mask_BT, axis=1)
    loss_B = -row_credit(traj) * jnp.exp(mean_B)
    return LossOut(
      jnp.broadcast_to(loss_B[:, None], logp_BT.shape),
      {'policy/clip_fraction': above_BT | below_BT},
    )
