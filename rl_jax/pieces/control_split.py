"""Its own average for the first token, which chooses the mode."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import safe_divide
from rl_jax.pieces.ops.sequences import live_rows
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Aggregation, AggregationContext
from rl_jax.types import Array


@piece
class ControlSplit(Aggregation):
  """coef * mean over rows of their first token, plus the mean of the others.

  Two terms whose denominators do not mix: the gradient of the control token
  does not depend on the length of the response. Rows whose first token was
  forced are not in the first mean.
  Source: Thinkless (DeGRPO); VainF/Thinkless core_algos.py. The paper averages
  the other tokens per row.
  """

  coef: float = ranged(1e-3, 0.0)  # alpha of the paper

  def __call__(self, ctx: AggregationContext) -> Array:
    """Weights [B, T]."""
    mask_BT, weight_B = ctx.mask_BT, ctx.weight_B
    live_B, _ = live_rows(mask_BT, weight_B)
    first_BT = (mask_BT > 0) & (jnp.arange(mask_BT.shape[1])[None] == 0)
    rest_BT = jnp.where(first_BT, 0.0, mask_BT)
    chose_B = live_B * first_BT[:, 0]
    control_B = self.coef * safe_divide(weight_B, chose_B.sum())
    other_B = safe_divide(weight_B, (live_B * rest_BT.sum(1)).sum())
    return first_BT * control_B[:, None] + rest_BT * other_B[:, None]
