"""The likelihood of winning responses, as company of a loss on pairs."""

from typing import Any

import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.edges import winners
from rl_jax.pieces.ops.masking import masked_sum, safe_divide
from rl_jax.pieces.ops.sequences import row_weight
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Regularizer


@piece
class ChosenLikelihood(Regularizer):
  """-coef mean of logp over rows that win an edge, by `average`:

    'token'     sum of logp / number of tokens (ORPO, CPO)
    'row_sum'   sum of logp / number of rows (SLiC, RPO's cumulative form)
    'row_mean'  mean over rows of the mean over a row's tokens (RPO's average
                form, IRPO)

  Trained tokens only: the prompt, which some codes of ORPO count, does not. A
  row that wins several edges counts once. Sources: TRL orpo_trainer.py, HALOs
  SLiCTrainer (by digests); YSLIU627/Regularized-Preference-Optimization
  OpenRLHF/openrlhf/trainer/dpo_trainer.py.
  """

  coef: float = ranged(1.0, 0.0)
  average: str = chosen('token', ('token', 'row_sum', 'row_mean'))
  aggregation: Any = None  # a scalar loss is not aggregated
  per_group = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    weight_B = row_weight(traj) * winners(traj)
    tokens_B = traj.mask_BT.sum(1)
    total_B = masked_sum(ctx.stats['logp'], traj.mask_BT, axis=1)
    live_B = (weight_B != 0).astype(jnp.float32)
    count = live_B.sum()
    if self.average == 'token':
      count = (live_B * tokens_B).sum()
    elif self.average == 'row_mean':
      total_B = safe_divide(total_B, tokens_B)
    nll = -safe_divide(masked_sum(total_B, live_B * weight_B), count)
    return LossOut(self.coef * nll, {'preference/chosen_nll': nll})
