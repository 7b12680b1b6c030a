"""A bonus for the entropy of the next-token distribution."""

from typing import Any, ClassVar

import chex
from flax import struct

from rl_jax.checks import check_range
from rl_jax.types import Array, Metrics, Trajectories


@struct.dataclass(kw_only=True)
class EntropyBonus:
  """l_t = -coef * H_t, H_t the entropy of the policy before token t, in nats.

  Source: A3C, section 4. Raises ValueError for a coef that is not a number; a
  negative coef lowers the entropy.
  """

  coef: float = 1e-3  # per nat
  aggregation: Any = None  # overrides the method's
  role: ClassVar[str] = 'regularizer'
  per_token: ClassVar[bool] = True
  needs: ClassVar[tuple[str, ...]] = ('entropy',)

  def __post_init__(self):
    check_range(self, 'coef')

  def __call__(
    self, stats: dict[str, Array], traj: Trajectories, key: Array
  ) -> tuple[Array, Metrics]:
    """Loss [B, T]."""
    del key
    chex.assert_equal_shape([stats['entropy'], traj.mask_BT])
    return -self.coef * stats['entropy'], {}
