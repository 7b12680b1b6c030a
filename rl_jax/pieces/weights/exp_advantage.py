"""Advantage-weighted regression: likelihood weighted by exp(beta A)."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Weight


@piece
class ExpAdvantage(Weight):
  """w_t = min(exp(beta A_t), most).

  On a loss of likelihood the policy becomes pi_data exp(beta A), normalised;
  beta = 0 is behaviour cloning.
  Source: Peng et al., "Advantage-Weighted Regression"; iql_model.py of
  Sea-Snell/Implicit-Language-Q-Learning (awac_weight, 0 in its shipped runs).
  """

  beta: float = ranged(4.0, 0.0)  # per unit of the reward
  most: float = ranged(20.0, 0.0, open_low=True)
  per_token = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Weights [B, T]."""
    log_BT = jnp.minimum(self.beta * ctx.traj.advantages_BT, jnp.log(self.most))
    weight_BT = jnp.exp(log_BT)
    return LossOut(weight_BT, {'policy/advantage_weight': weight_BT})
