"""Policy gradient whose refined rows have a shaped probability for a ratio."""

from typing import Any

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.ratios import log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class ShapedProbability(Loss):
  """l_t = -A rho_t on samples, -A f(p_t) on foreign rows.

  f(p) = p / (p + gamma); rho = pi(y_t) / pi_old(y_t), without a clip; p is
  pi(y_t) under the prompt of the group. The gradient of f with respect to
  log p, gamma p / (p + gamma)^2, is largest, 1/4, at p = gamma, so that
  unlikely tokens of refinements are learned. Without foreign rows it is the
  policy gradient. Source: Critique-GRPO, critique_core_algos.py (by a digest of
  the code), whose clip is off.
  """

  gamma: float = ranged(0.1, 0.0, open_low=True)
  aggregation: Any = None  # overrides the method's
  per_token = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj, logp_BT, adv_BT = ctx.policy_tokens()
    none_B = jnp.zeros_like(traj.valid_B)
    foreign_B1 = traj.extras.get('foreign_B', none_B)[:, None] > 0
    ratio_BT = jnp.exp(log_ratio(logp_BT, traj.logp_old_BT, traj.mask_BT))
    prob_BT = jnp.exp(logp_BT)
    shaped_BT = prob_BT / (prob_BT + self.gamma)
    factor_BT = jnp.where(foreign_B1, shaped_BT, ratio_BT)
    metrics = {'policy/refined': jnp.where(foreign_B1, traj.mask_BT, 0.0)}
    return LossOut(-adv_BT * factor_BT, metrics)
