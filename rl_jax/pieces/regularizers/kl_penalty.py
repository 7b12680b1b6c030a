"""The divergence from the reference policy as a term of the loss."""

from typing import Any

import chex

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.divergences import ESTIMATORS, kl_estimate
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer


@piece
class KLPenalty(Regularizer):
  """l_t = coef * k(logp_t, logp_ref_t), differentiated through logp.

  The gradient of k1 is 0 in expectation, that of k2 is the gradient of
  KL(policy || ref), that of k3 the gradient of KL(ref || policy); k1+ and k3+
  report k1, k3 and use the gradient of k2 (see divergences.kl_estimate).
  Source: DeepSeekMath, equation 4 (k3); verl core_algos.py (kl_penalty).
  """

  coef: float = ranged(1e-3, 0.0)  # per nat
  estimator: str = chosen('k3', ESTIMATORS)
  aggregation: Any = None  # overrides the method's
  per_token = True
  needs = ('logp_ref',)

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj = ctx.traj
    logp_BT = ctx.stats['logp']
    chex.assert_equal_shape([logp_BT, traj.logp_ref_BT, traj.mask_BT])
    kl_BT = kl_estimate(logp_BT, traj.logp_ref_BT, self.estimator)
    return LossOut(self.coef * kl_BT, {'policy/kl_ref': kl_BT})
