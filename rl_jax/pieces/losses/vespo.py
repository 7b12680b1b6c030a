"""VESPO: a smooth weight of the product ratio of the whole sequence."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.sequences import summed_log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class VESPO(Loss):
  """l_t = -sg[phi(w)] A_t logp_t,  phi(w) = w^power exp(decay (1 - w)).

  w is the product of pi / pi_old over the row's trained tokens, its logarithm
  within +-20 nats. phi(1) = 1, phi(0) = 0, and phi falls beyond its maximum at
  power / decay. Power and decay depend on the sign of A (A = 0: positive).
  Source: "VESPO: Variational Sequence-Level Soft Policy Optimization"; trl
  grpo_trainer.py (vespo).
  """

  positive_power: float = ranged(2.0, 0.0)
  positive_decay: float = ranged(3.0, 0.0)
  negative_power: float = ranged(3.0, 0.0)
  negative_decay: float = ranged(2.0, 0.0)
  aggregation: Any = None  # overrides the method's
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj, logp_BT, adv_BT = ctx.policy_tokens()
    fixed_BT = jax.lax.stop_gradient(logp_BT)
    log_w_B = summed_log_ratio(fixed_BT, traj.logp_old_BT, traj.mask_BT)
    log_w_BT = jnp.broadcast_to(log_w_B[:, None], logp_BT.shape)
    bad_BT = adv_BT < 0
    power_BT = jnp.where(bad_BT, self.negative_power, self.positive_power)
    decay_BT = jnp.where(bad_BT, self.negative_decay, self.positive_decay)
    # One exponential: w^power by itself may overflow where phi is 0.
    phi_BT = jnp.exp(power_BT * log_w_BT - decay_BT * jnp.expm1(log_w_BT))
    return LossOut(-phi_BT * adv_BT * logp_BT, {'policy/row_weight': phi_BT})
