"""T-PPO: the value head learns from responses that have ended only."""

from typing import Any

import chex

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import loss_mask, masked_mean
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import LossContext, LossOut, ValueLoss


@piece
class FinishedValue(ValueLoss):
  """coef * mean (V - ret)^2 over the trained tokens of ended responses.

  All but those that wait for their next window (extras['waits_B']) have ended,
  those at the token limit too.
  A scalar: the mean has its own denominator, whatever the aggregation. Give
  the method LambdaReturn(lam=1) as value target for Monte Carlo returns.
  Source: "Truncated Proximal Policy Optimization", from reviews and digests.
  """

  coef: float = ranged(0.5, 0.0)  # 0.5 is the half of the squared error
  aggregation: Any = None  # unused: the loss is a scalar
  needs = ('values',)

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if nothing computes the targets."""
    method = context.method
    if method.value_target is None:
      raise ValueError(
        'FinishedValue needs method.value_target: for example '
        'LambdaReturn(lam=1.0)'
      )

  def __call__(self, ctx: LossContext) -> LossOut:
    """Scalar loss."""
    traj = ctx.traj
    value_BT, target_BT = ctx.stats['values'], traj.returns_BT
    chex.assert_equal_shape([value_BT, target_BT, traj.mask_BT])
    mask_BT = loss_mask(traj) * (row_inputs.waits_B(traj) == 0)[:, None]
    error_BT = (value_BT - target_BT) ** 2
    return LossOut(
      self.coef * masked_mean(error_BT, mask_BT),
      {
        'value/error': error_BT,
        'value/mean': value_BT,
      },
    )
