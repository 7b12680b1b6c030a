"""Implicit Q-learning: V is an expectile of Q, Q the one-step return."""

from typing import Any

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import LossContext, LossOut, ValueLoss
from rl_jax.pieces.statistics.action_values import ActionValues

_OWN = ActionValues()


@piece
class ImplicitQ(ValueLoss):
  """l_t = |tau - 1[ret_0 < V]| (ret_0 - V)^2 + sum_h (ret_h - Q_h)^2, h = 1, 2.

  V and, of every token of the vocabulary, Q_1 and Q_2 are outputs of the value
  head before the token. With tau = 0.5 V becomes the mean of Q over the data's
  actions, with tau -> 1 the largest.
  Source: as credit.ImplicitAdvantage (L_V and L_Q).
  """

  tau: float = ranged(0.7, 0.0, 1.0, open_low=True, open_high=True)
  aggregation: Any = None  # overrides the method's
  per_token = True
  needs = (_OWN,)

  def check(self, context: CheckContext) -> None:
    """Raises ValueError unless the targets are those of V and both Q."""
    method = context.method
    target = method.value_target
    if target is None or target.num_targets != 3:
      raise ValueError(
        'ImplicitQ needs method.value_target: ImplicitTargets(); it is '
        f'{method.value_target}'
      )

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    values_BT3, target_BT3 = ctx.stats[_OWN.name], ctx.traj.returns_BTH
    chex.assert_equal_shape([values_BT3, target_BT3])
    error_BT3 = target_BT3 - values_BT3
    weight_BT = jnp.abs(self.tau - (error_BT3[..., 0] < 0))
    square_BT3 = error_BT3**2
    loss_BT = weight_BT * square_BT3[..., 0] + square_BT3[..., 1:].sum(axis=-1)
    return LossOut(
      loss_BT,
      {
        'value/mean': values_BT3[..., 0],
        'value/error': square_BT3[..., 1],
      },
    )
