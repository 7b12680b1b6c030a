"""PPO's clipped regression of the value head."""

from typing import Any

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import LossContext, LossOut, ValueLoss


@piece
class ValueClip(ValueLoss):
  """l_t = coef * max((V - ret)^2, (V_old + clip(V - V_old, +-clip) - ret)^2).

  Source: openai/baselines ppo2; verl core_algos.py (compute_value_loss).
  """

  coef: float = ranged(0.5, 0.0)  # 0.5 is the half of the squared error
  clip: float = ranged(0.2, 0.0, open_low=True)  # in units of the return
  aggregation: Any = None  # overrides the method's
  per_token = True
  needs = ('values',)

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if nothing computes the targets."""
    method = context.method
    if method.value_target is None:
      raise ValueError(
        'ValueClip needs method.value_target: for example LambdaReturn()'
      )

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj = ctx.traj
    value_BT, old_BT, target_BT = (
      ctx.stats['values'],
      traj.values_BT,
      traj.returns_BT,
    )
    chex.assert_equal_shape([value_BT, old_BT, target_BT, traj.mask_BT])
    moved_BT = value_BT - old_BT
    step_BT = jnp.clip(moved_BT, -self.clip, self.clip)
    error_BT = (value_BT - target_BT) ** 2
    held_BT = (old_BT + step_BT - target_BT) ** 2
    # Inside the clip both are the same but for rounding.
    clipped_BT = (step_BT != moved_BT) & (held_BT > error_BT)
    return LossOut(
      self.coef * jnp.maximum(error_BT, held_BT),
      {
        'value/error': error_BT,
        'value/clip_fraction': clipped_BT,
        'value/mean': value_BT,
      },
    )
