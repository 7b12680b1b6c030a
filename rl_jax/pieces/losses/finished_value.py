"""T-PPO: the value head learns from responses that have ended only."""

from typing import Any, ClassVar

import chex

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import loss_mask, masked_mean
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Metrics, Trajectories


@piece
class FinishedValue:
  """coef * mean (V - ret)^2 over the trained tokens of ended responses.

  All but those that wait for their next window (extras['waits_B']) have ended,
  those at the token limit too.
  A scalar: the mean has its own denominator, whatever the aggregation. Give
  the method LambdaReturn(lam=1) as value target for Monte Carlo returns.
  Source: "Truncated Proximal Policy Optimization", from reviews and digests.
  """

  coef: float = ranged(0.5, 0.0)  # 0.5 is the half of the squared error
  aggregation: Any = None  # unused: the loss is a scalar
  role: ClassVar[str] = 'value'
  per_token: ClassVar[bool] = False
  needs: ClassVar[tuple[str, ...]] = ('values',)

  def check_method(self, method) -> None:
    """Raises ValueError if nothing computes the targets."""
    if method.value_target is None:
      raise ValueError(
        'FinishedValue needs method.value_target: for example '
        'LambdaReturn(lam=1.0)'
      )

  def __call__(
    self, stats: dict[str, Array], traj: Trajectories, key: Array
  ) -> tuple[Array, Metrics]:
    """Scalar loss."""
    del key
    value_BT, target_BT = stats['values'], traj.returns_BT
    chex.assert_equal_shape([value_BT, target_BT, traj.mask_BT])
    mask_BT = loss_mask(traj) * (row_inputs.waits_B(traj) == 0)[:, None]
    error_BT = (value_BT - target_BT) ** 2
    return self.coef * masked_mean(error_BT, mask_BT), {
      'value/error': error_BT,
      'value/mean': value_BT,
    }
