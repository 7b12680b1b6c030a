"""The divergence from the reference over the whole vocabulary, as a loss."""

from typing import Any, ClassVar

import chex

from rl_jax.checks import ranged
from rl_jax.pieces.piece import piece
from rl_jax.pieces.statistics.full_kl import FullKL
from rl_jax.types import Array, Metrics, Trajectories


@piece
class ExactKL:
  """l_t = coef * sum_v pi(v) (log pi(v) - log pi_ref(v)) at place t.

  Differentiated through pi: the gradient of KL(pi || ref) given the prefix,
  where the estimators of KLPenalty have its expectation at best. The reference
  runs forward in every update.
  Source: the definition of the divergence; no paper.
  """

  coef: float = ranged(1e-3, 0.0)  # per nat
  aggregation: Any = None  # overrides the method's
  role: ClassVar[str] = 'regularizer'
  per_token: ClassVar[bool] = True
  needs: ClassVar[tuple] = (FullKL(),)

  def __call__(
    self, stats: dict[str, Array], traj: Trajectories, key: Array
  ) -> tuple[Array, Metrics]:
    """Loss [B, T]."""
    del key
    kl_BT = stats[FullKL.name]
    chex.assert_equal_shape([kl_BT, traj.mask_BT])
    return self.coef * kl_BT, {'policy/kl_full': kl_BT}
