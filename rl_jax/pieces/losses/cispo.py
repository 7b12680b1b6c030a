"""CISPO: the importance weight is clipped, the gradient never is."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.ratios import log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class CISPO(Loss):
  """l_t = -sg[clip(r_t, 1 - clip_low, 1 + clip_high)] A_t logp_t.

    r_t = exp(logp_t - logp_old_t), the log-ratio within +-20 nats

  No token loses its gradient; only the size of its weight is bounded.
  Source: "MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning
  Attention", equation 4; verl core_algos.py (cispo). MiniMax bounds only from
  above; trl cuts at clip_high itself, not at 1 + clip_high.
  """

  clip_low: float = ranged(0.2, 0.0, 1.0)  # 1 is not a lower bound
  clip_high: float = ranged(0.28, 0.0)
  aggregation: Any = None  # overrides the method's
  per_token = True
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj, logp_BT, adv_BT = ctx.policy_tokens()
    ratio_BT = jnp.exp(log_ratio(logp_BT, traj.logp_old_BT, traj.mask_BT))
    low, high = 1.0 - self.clip_low, 1.0 + self.clip_high
    weight_BT = jax.lax.stop_gradient(jnp.clip(ratio_BT, low, high))
    return LossOut(
      -weight_BT * adv_BT * logp_BT,
      {'policy/clip_fraction': (ratio_BT < low) | (ratio_BT > high)},
    )
