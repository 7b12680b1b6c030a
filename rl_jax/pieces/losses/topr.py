"""TOPR: REINFORCE whose importance weights are truncated by reward sign."""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.sequences import row_credit, summed_log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class TOPR(Loss):
  """l_t = -sg[w] A_t logp_t with a truncated sequence weight w.

    w = clip(prod_t pi(y_t) / mu(y_t), low, high) over the row's trained tokens;
    the limits are positive_* where the row's A > 0, else negative_*

  The canonical limits make w = 1 for positives (supervised learning) and cut
  the weight of negatives to [0, 1]: responses that are unlikely already get
  small weights. mu is logp_old, or logp_behaviour for rows of another policy.
  Source: "Tapered Off-Policy REINFORCE"; no author code. ROLL uses the token
  ratio and advantages.
  """

  positive_low: float = ranged(1.0, 0.0)
  positive_high: float = ranged(1.0, 0.0)
  negative_low: float = ranged(0.0, 0.0)
  negative_high: float = ranged(1.0, 0.0)
  denominator: str = chosen('old', ('old', 'behaviour'))
  aggregation: Any = None  # overrides the method's
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj = ctx.traj
    logp_BT, adv_BT = ctx.stats['logp'], traj.advantages_BT
    old_BT = traj.logp_old_BT
    if self.denominator == 'behaviour':
      old_BT = traj.logp_behaviour_BT
    chex.assert_equal_shape([logp_BT, adv_BT, old_BT, traj.mask_BT])
    fixed_BT = jax.lax.stop_gradient(logp_BT)
    ratio_B = jnp.exp(summed_log_ratio(fixed_BT, old_BT, traj.mask_BT))
    positive_B = row_credit(traj) > 0
    low_B = jnp.where(positive_B, self.positive_low, self.negative_low)
    high_B = jnp.where(positive_B, self.positive_high, self.negative_high)
    weight_BT = jnp.broadcast_to(
      jnp.clip(ratio_B, low_B, high_B)[:, None], logp_BT.shape
    )
    return LossOut(
      -weight_BT * adv_BT * logp_BT, {'policy/row_weight': weight_BT}
    )
