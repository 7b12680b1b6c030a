"""A bonus for the entropy of the next-token distribution."""

from typing import Any

import chex

from rl_jax.checks import ranged
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer


@piece
class EntropyBonus(Regularizer):
  """l_t = -coef * H_t, H_t the entropy of the policy before token t, in nats.

  Source: A3C, section 4.
  """

  coef: float = ranged(1e-3)  # per nat; below 0 lowers the entropy
  aggregation: Any = None  # overrides the method's
  per_token = True
  needs = ('entropy',)

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    stats, traj = ctx.stats, ctx.traj
    chex.assert_equal_shape([stats['entropy'], traj.mask_BT])
    return LossOut(-self.coef * stats['entropy'], {})
