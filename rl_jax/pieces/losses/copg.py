"""CoPG: differences of regularised rewards inside a group go to zero."""

from typing import Any

import chex

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import (
  by_group,
  masked_center,
  masked_sum,
  safe_divide,
)
from rl_jax.pieces.ops.sequences import (
  exact_log_ratio,
  mean_over_groups,
  row_credit,
  row_weight,
)
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class CoPG(Loss):
  """L = mean over groups of 1 / (k - 1) sum_{i > j} (S_i - S_j)^2.

    S_i = R_i - coef h_i,  h_i = sum over the row's trained tokens of
                                 logp - logp_ref

  R is the row's credit without a baseline, k the rows of the group. The
  gradient is -2 coef sum_i (S_i - mean of the other S) grad logp(y_i): RLOO
  with the KL in the reward, correct for rows of any policy. Its minimum is
  pi ~ pi_ref exp(R / coef).
  Source: "Contrastive Policy Gradient: Aligning LLMs on sequence-level scores
  in a supervised-friendly fashion"; group form of the Command A report.
  """

  coef: float = ranged(0.1, 0.0, open_low=True)  # reward per nat
  aggregation: Any = None  # a scalar loss is not aggregated
  needs = ('logp_ref',)
  min_group_size = 2
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    logp_BT, mask_BT = ctx.stats['logp'], traj.mask_BT
    chex.assert_equal_shape([logp_BT, traj.logp_ref_BT, mask_BT])
    ratio_B = exact_log_ratio(logp_BT, traj.logp_ref_BT, mask_BT)
    score_NG = by_group(row_credit(traj) - self.coef * ratio_B, traj.group_size)
    weight_NG = by_group(row_weight(traj), traj.group_size)
    # sum_{i > j} (S_i - S_j)^2 = k sum_i (S_i - mean S)^2.
    squares_NG = masked_center(score_NG, weight_NG, axis=1) ** 2
    count_N = weight_NG.sum(1)
    loss_N = masked_sum(squares_NG, weight_NG, axis=1) * count_N
    loss_N = safe_divide(loss_N, (count_N - 1.0) * (count_N > 1))
    loss = mean_over_groups(loss_N, weight_NG.ravel())
    return LossOut(loss, {'policy/contrast': loss})
