"""A bound on the divergence from the old policy, as a squared hinge."""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import masked_mean
from rl_jax.pieces.ops.ratios import log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer


@piece
class KLConstraint(Regularizer):
  """L = sg[coef max(KL - limit, 0)] KL,  KL = mean of logp_old_t - logp_t.

  The mean is over the trained tokens of the minibatch. The gradient is that of
  coef / 2 max(KL - limit, 0)^2, which is 0 inside the bound.
  Source: DisCO, section 4; Optimization-AI/DisCO dp_actor.py.
  """

  coef: float = ranged(1e3, 0.0)  # per squared nat
  limit: float = ranged(1e-4, 0.0)  # nats per token
  aggregation: Any = None  # a scalar loss is not aggregated

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    logp_BT, mask_BT = ctx.stats['logp'], traj.mask_BT
    chex.assert_equal_shape([logp_BT, traj.logp_old_BT, mask_BT])
    change_BT = log_ratio(logp_BT, traj.logp_old_BT, mask_BT)
    kl = masked_mean(-change_BT, mask_BT * traj.weight_B[:, None])
    slope = self.coef * jnp.maximum(jax.lax.stop_gradient(kl) - self.limit, 0.0)
    return LossOut(slope * kl, {'policy/constraint_slope': slope})
