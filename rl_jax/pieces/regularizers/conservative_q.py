"""CQL: action values of tokens that the data lack are kept low."""

from typing import Any

import chex

from rl_jax.checks import ranged
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer
from rl_jax.pieces.statistics.action_values import (
  ActionNormalisers,
  ActionValues,
)

_OWN = ActionValues()


@piece
class ConservativeQ(Regularizer):
  """l_t = coef sum_h (log sum_v exp Q_h(v) - Q_h(y_t)), h = 1, 2.

  The cross-entropy of softmax(Q_h) at the recorded token; a common shift of all
  Q of a place changes nothing.
  Source: as credit.ImplicitAdvantage (L_CQL, at its temperature of 1).
  """

  coef: float = ranged(1e-4, 0.0)  # per nat
  aggregation: Any = None  # overrides the method's
  per_token = True
  needs = (_OWN, ActionNormalisers())

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    stats = ctx.stats
    q_BT2 = stats[_OWN.name][..., 1:]
    normaliser_BT2 = stats[ActionNormalisers.name]
    chex.assert_equal_shape([q_BT2, normaliser_BT2])
    entropy_BT = (normaliser_BT2 - q_BT2).sum(axis=-1)
    return LossOut(self.coef * entropy_BT, {'value/cross_entropy': entropy_BT})
