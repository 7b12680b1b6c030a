"""Implicit Q-learning: V is an expectile of Q, Q the one-step return."""

from typing import Any, ClassVar

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Metrics, Trajectories


@piece
class ImplicitQ:
  """l_t = |tau - 1[ret_0 < V]| (ret_0 - V)^2 + sum_h (ret_h - Q_h)^2, h = 1, 2.

  V is the first head before the token, Q_h the others behind it. With tau = 0.5
  V becomes the mean of Q over the data's actions, with tau -> 1 the largest.
  Source: as credit.ImplicitAdvantage (L_V and L_Q).
  """

  tau: float = ranged(0.7, 0.0, 1.0, open_low=True, open_high=True)
  aggregation: Any = None  # overrides the method's
  role: ClassVar[str] = 'value'
  per_token: ClassVar[bool] = True
  needs: ClassVar[tuple[str, ...]] = ('value_heads', 'value_heads_after')
  num_values: ClassVar[int] = 3

  def check_method(self, method) -> None:
    """Raises ValueError unless the targets have as many outputs."""
    if getattr(method.value_target, 'num_values', 1) != self.num_values:
      raise ValueError(
        'ImplicitQ needs method.value_target: ImplicitTargets(); it is '
        f'{method.value_target}'
      )

  def __call__(
    self, stats: dict[str, Array], traj: Trajectories, key: Array
  ) -> tuple[Array, Metrics]:
    """Loss [B, T]."""
    del key
    value_BT = stats['value_heads'][..., 0]
    q_BT2, target_BTH = stats['value_heads_after'][..., 1:3], traj.returns_BTH
    chex.assert_equal_shape([q_BT2, target_BTH[..., 1:]])
    above_BT = target_BTH[..., 0] - value_BT
    weight_BT = jnp.abs(self.tau - (above_BT < 0))
    error_BT2 = (target_BTH[..., 1:] - q_BT2) ** 2
    loss_BT = weight_BT * above_BT**2 + error_BT2.sum(axis=-1)
    return loss_BT, {'value/mean': value_BT, 'value/error': error_BT2[..., 0]}
