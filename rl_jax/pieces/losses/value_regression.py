"""Squared errors of all outputs of the value head."""

from typing import Any

import chex
import jax.numpy as jnp

from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import LossContext, LossOut, ValueLoss
from rl_jax.types import static


@piece
class ValueRegression(ValueLoss):
  """l_t = sum_h coefs_h (V_h - ret_h)^2.

  Source: "Confronting Reward Model Overoptimization with Constrained RLHF";
  tedmoskovitz/ConstrainedRL4LMs constrained_ppo.py, without a value clip.
  Raises ValueError unless each coefficient is 0 or above.
  """

  coefs: tuple[float, ...] = static(default=(0.5, 0.5, 0.2))
  aggregation: Any = None  # overrides the method's
  per_token = True
  needs = ('value_heads',)

  def __post_init__(self):
    if not self.coefs or min(self.coefs) < 0:
      raise ValueError(
        f'ValueRegression.coefs = {self.coefs}: one number >= 0 for each '
        'output of the value head'
      )

  @property
  def num_values(self) -> int:
    """One for each coefficient."""
    return len(self.coefs)

  def check(self, context: CheckContext) -> None:
    """Raises ValueError unless the targets have as many outputs."""
    method = context.method
    target = method.value_target
    if target is None or target.num_values != self.num_values:
      raise ValueError(
        f'ValueRegression.coefs = {self.coefs} needs a method.value_target '
        f'with {self.num_values} outputs, for example ComponentReturns(); it '
        f'is {target}'
      )

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    value_BTH, target_BTH = ctx.stats['value_heads'], ctx.traj.returns_BTH
    chex.assert_equal_shape([value_BTH, target_BTH])
    error_BTH = (value_BTH - target_BTH) ** 2
    loss_BT = error_BTH @ jnp.asarray(self.coefs, error_BTH.dtype)
    outputs = range(self.num_values)
    errors = {f'value/error_{h}': error_BTH[..., h] for h in outputs}
    return LossOut(loss_BT, errors)
