"""HiPER: regression of the values of sub-goals, actions and switches."""

from typing import Any

from rl_jax.checks import ranged
from rl_jax.pieces.ops import hierarchy as ops
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import LossContext, LossOut, ValueLoss


@piece
class HierarchicalValue(ValueLoss):
  """l_t = coef sum_h (V_h - ret_h)^2 over the heads that are read at token t.

  Source: as HierarchicalGAE, without the clip of its values.
  """

  coef: float = ranged(0.5, 0.0)
  aggregation: Any = None  # overrides the method's
  per_token = True
  needs = ('value_heads',)
  num_values = 3
  reads = ops.READS

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if nothing computes the targets."""
    method = context.method
    if method.value_target is None:
      raise ValueError(
        'HierarchicalValue needs method.value_target: HierarchicalReturn()'
      )

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj = ctx.traj
    error_BTH = ctx.stats['value_heads'][..., :3] - traj.returns_BTH
    places_BTH = ops.hierarchy(traj).places()
    error_BT = (places_BTH * error_BTH**2).sum(axis=-1)
    return LossOut(self.coef * error_BT, {'value/error': error_BT})
