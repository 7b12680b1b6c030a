"""SPPO: log-ratios of responses are fitted to their win rates."""

from typing import Any

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.edges import losers, winners
from rl_jax.pieces.ops.masking import masked_sum, safe_divide
from rl_jax.pieces.ops.sequences import row_credit, row_weight
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class WinRateRegression(Loss):
  """L = mean over rows of (D - (P - 1/2) / beta)^2 / 2, times 2 a pair.

  P is the row's credit, its win rate in [0, 1] (shaping.WinRate); D the sum of
  logp - logp_ref over its trained tokens. With method.pairs only rows of its
  edges count, and the denominator is the number of pairs, else that of rows.
  Source: uclaml/SPPO trainer.py (by a digest of the code).
  """

  beta: float = ranged(0.1, 0.0, open_low=True)
  aggregation: Any = None  # a scalar loss is not aggregated
  per_group = True
  needs = ('logp_ref',)
  min_group_size = 2
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    ratio_B = masked_sum(
      ctx.stats['logp'] - traj.logp_ref_BT, traj.mask_BT, axis=1
    )
    weight_B, rows_a_unit = row_weight(traj), 1.0
    if traj.edges is not None:
      weight_B = weight_B * jnp.maximum(winners(traj), losers(traj))
      rows_a_unit = 2.0
    live_B = (weight_B != 0).astype(jnp.float32)
    error_B = ratio_B - (row_credit(traj) - 0.5) / self.beta
    total = masked_sum(0.5 * error_B**2, live_B * weight_B)
    loss = rows_a_unit * safe_divide(total, live_B.sum())
    return LossOut(loss, {'policy/regression_error': loss})
