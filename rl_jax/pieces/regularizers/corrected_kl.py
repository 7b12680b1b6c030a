"""The divergence from the reference on tokens that an older policy drew."""

from typing import Any

import chex
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.divergences import kl_estimate
from rl_jax.pieces.ops.ratios import log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer


@piece
class CorrectedKL(Regularizer):
  """l_t = coef r_t k(logp_t, logp_ref_t), r_t = pi / pi_old, with its gradient.

  On tokens drawn from pi_old the ratio makes the value an unbiased estimate of
  KL(policy || ref), and its gradient one of that divergence's gradient: for k3
  it is r_t (logp_t - logp_ref_t). KLPenalty has the gradient of KL(ref ||
  policy) there, which has no bound where the policy is far below the reference.
  The log-ratio is held within +-20 nats and is not clipped otherwise.
  Source: "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models"
  (unbiased KL estimate); trl (use_bias_correction_kl).
  """

  coef: float = ranged(1e-3, 0.0)  # per nat
  estimator: str = chosen('k3', ('k1', 'k3'))  # those with an unbiased value
  aggregation: Any = None  # overrides the method's
  per_token = True
  needs = ('logp_ref',)

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj = ctx.traj
    logp_BT = ctx.stats['logp']
    arrays = logp_BT, traj.logp_old_BT, traj.mask_BT
    chex.assert_equal_shape([*arrays, traj.logp_ref_BT])
    kl_BT = kl_estimate(logp_BT, traj.logp_ref_BT, self.estimator)
    kl_BT = jnp.exp(log_ratio(*arrays)) * kl_BT
    return LossOut(self.coef * kl_BT, {'policy/kl_ref': kl_BT})
