"""XPO's company: what the opponent would write becomes less likely."""

from typing import Any

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import masked_mean, masked_sum
from rl_jax.pieces.ops.sequences import row_weight
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer


@piece
class Optimism(Regularizer):
  """coef * mean of S over the rows of the opponent, S = sum of logp of a row.

  Lowers the likelihood of responses of the reference: exploration by optimism.
  Source: XPO, TRL xpo_trainer.py (by a digest of the code).
  """

  coef: float = ranged(1e-5, 0.0)  # alpha of the paper
  aggregation: Any = None  # a scalar loss is not aggregated
  per_group = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    weight_B = row_weight(traj) * row_inputs.read(traj, 'opponent_B')
    live_B = (weight_B != 0).astype(jnp.float32)
    sum_B = masked_sum(ctx.stats['logp'], traj.mask_BT, axis=1)
    mean = masked_mean(sum_B, live_B)
    return LossOut(self.coef * mean, {'preference/logp_opponent': mean})
