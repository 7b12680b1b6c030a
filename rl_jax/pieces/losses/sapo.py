"""SAPO: a soft gate in place of the clip."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.ratios import log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class SAPO(Loss):
  """l_t = -A_t (4 / tau) sigmoid(tau (r_t - 1)).

    r_t = exp(logp_t - logp_old_t), the log-ratio within +-20 nats
    tau = positive_temperature where A > 0, else negative_temperature

  The gradient weight 4 sigmoid' r is 1 at r = 1 and fades on both sides.
  Source: "Soft Adaptive Policy Optimization"; verl and trl (sapo).
  """

  positive_temperature: float = ranged(1.0, 0.0, open_low=True)
  negative_temperature: float = ranged(1.05, 0.0, open_low=True)
  aggregation: Any = None  # overrides the method's
  per_token = True
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj, logp_BT, adv_BT = ctx.policy_tokens()
    ratio_BT = jnp.exp(log_ratio(logp_BT, traj.logp_old_BT, traj.mask_BT))
    tau_BT = jnp.where(
      adv_BT > 0, self.positive_temperature, self.negative_temperature
    )
    gate_BT = jax.nn.sigmoid(tau_BT * (ratio_BT - 1.0))
    slope_BT = 4.0 * gate_BT * (1.0 - gate_BT)
    return LossOut(-adv_BT * 4.0 / tau_BT * gate_BT, {'policy/gate': slope_BT})
