"""DisCO: right answers above a soft maximum of the wrong ones."""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.masking import by_group, masked_mean
from rl_jax.pieces.ops.ratios import log_ratio
from rl_jax.pieces.ops.sequences import mean_over_groups, row_credit, row_weight
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class DisCO(Loss):
  """L = -mean over groups of J, with the mean score s_i of each row's tokens.

    J = mean_right s - tau log mean_wrong exp(s / tau)     (DisCO)
    J = mean_right s - mean_wrong s   with tau = None      (DisCO-b)
    s_i = mean_t logp_t ('logp') or mean_t pi / pi_old ('ratio')

  A row is right if its credit exceeds `threshold`: leave the credit chain
  empty. A group without both classes adds 0 and counts. No clip: pair it with
  regularizers.KLConstraint.
  Source: "DisCO: Reinforcing Large Reasoning Models with Discriminative
  Constrained Optimization"; Optimization-AI/DisCO core_algos.py, where the
  logarithm is written as S / sg[S], which has the same gradient.
  """

  # 10 for 'logp', 1 for 'ratio'; None: DisCO-b.
  tau: float | None = ranged(10.0, 0.0, open_low=True)
  threshold: float = 0.5  # in units of the reward
  score: str = chosen('logp', ('logp', 'ratio'))
  aggregation: Any = None  # a scalar loss is not aggregated
  min_group_size = 2

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    logp_BT, mask_BT = ctx.stats['logp'], traj.mask_BT
    chex.assert_equal_shape([logp_BT, traj.logp_old_BT, mask_BT])
    score_BT = logp_BT
    if self.score == 'ratio':
      score_BT = jnp.exp(log_ratio(logp_BT, traj.logp_old_BT, mask_BT))
    score_B = masked_mean(score_BT, mask_BT, axis=1)
    weight_B = row_weight(traj)
    right_B = row_credit(traj) > self.threshold
    score_NG, right_NG, wrong_NG = (
      by_group(x, traj.group_size)
      for x in (score_B, weight_B * right_B, weight_B * ~right_B)
    )
    both_N = (right_NG.sum(1) > 0) & (wrong_NG.sum(1) > 0)
    low_N = masked_mean(score_NG, wrong_NG, axis=1)
    if self.tau is not None:
      # Equal weights where a class is missing: the value is replaced below.
      kept_NG = jnp.where(both_N[:, None], wrong_NG, 1.0)
      total_N = jax.nn.logsumexp(score_NG / self.tau, axis=1, b=kept_NG)
      low_N = self.tau * (total_N - jnp.log(kept_NG.sum(1)))
    gap_N = masked_mean(score_NG, right_NG, axis=1) - low_N
    gap_N = jnp.where(both_N, gap_N, 0.0)
    margin = mean_over_groups(gap_N, weight_B)
    return LossOut(-margin, {'policy/margin': margin})
