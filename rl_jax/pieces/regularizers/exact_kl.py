"""The divergence from the reference over the whole vocabulary, as a loss."""

from typing import Any

import chex

from rl_jax.checks import ranged
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer
from rl_jax.pieces.statistics.full_kl import FullKL


@piece
class ExactKL(Regularizer):
  """l_t = coef * sum_v pi(v) (log pi(v) - log pi_ref(v)) at place t.

  Differentiated through pi: the gradient of KL(pi || ref) given the prefix,
  where the estimators of KLPenalty have its expectation at best. The reference
  runs forward in every update.
  Source: the definition of the divergence; no paper.
  """

  coef: float = ranged(1e-3, 0.0)  # per nat
  aggregation: Any = None  # overrides the method's
  per_token = True
  needs = (FullKL(),)

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    kl_BT = ctx.stats[FullKL.name]
    chex.assert_equal_shape([kl_BT, ctx.traj.mask_BT])
    return LossOut(self.coef * kl_BT, {'policy/kl_full': kl_BT})
