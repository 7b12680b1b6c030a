"""Q-learning: the values of drawn tokens are fitted to their targets."""

from typing import Any

import chex

from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.pieces.statistics.action_values import ActionValues

_OWN = ActionValues()


@piece
class ActionRegression(Loss):
  """l_t = (Q_1(y_t) - ret_t)^2 + (Q_2(y_t) - ret_t)^2.

  Q_1 and Q_2, of every token of the vocabulary, are outputs of the value head
  before the token. The policy is what acts by them, logits.ActionValueTilt, and
  has no other loss.
  Source: Gur et al., "Learning to Navigate the Web"; the parts of an action are
  tokens here, of which each has values.
  """

  aggregation: Any = None  # overrides the method's
  per_token = True
  needs = (_OWN,)
  off_policy = True

  def check(self, context: CheckContext) -> None:
    """Raises ValueError without targets, or where nothing acts by values."""
    method = context.method
    if method.value_target is None:
      raise ValueError(
        'ActionRegression needs method.value_target: for example MaxTargets()'
      )
    if not any(piece.value_heads for piece in method.logits):
      raise ValueError(
        'ActionRegression needs ActionValueTilt() in method.logits: without it '
        'nothing acts by the values that are learned'
      )

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    q_BT2 = ctx.stats[_OWN.name][..., 1:]
    target_BT = ctx.traj.returns_BT
    chex.assert_equal_shape([q_BT2[..., 0], target_BT])
    error_BT = ((q_BT2 - target_BT[..., None]) ** 2).sum(axis=-1)
    return LossOut(
      error_BT, {'value/error': error_BT, 'value/mean': q_BT2[..., 0]}
    )
