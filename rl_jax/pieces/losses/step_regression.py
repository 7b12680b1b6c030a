"""Direct advantage: log-ratios of whole steps are fitted to advantages."""

from typing import Any

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.masking import loss_mask, masked_mean
from rl_jax.pieces.ops.ratios import log_ratio
from rl_jax.pieces.ops.segments import SOURCES, segment_means, segment_starts
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class StepRegression(Loss):
  """L = 1/2 mean over steps of (A / coef - sum_t (logp_t - logp_old_t))^2.

  A step is a turn (an action between observations; the whole response in one
  turn), or begins where extras['segment_start_BT'] says so; A is the mean of
  its tokens' advantages. The mean over steps is weighted by row.
  Source: "Improving Multi-Step Reasoning Abilities of Large Language Models
  with Direct Advantage Policy Optimization", from the text; its steps are
  lines.
  """

  # Advantage per nat; smaller moves farther.
  coef: float = ranged(0.01, 0.0, open_low=True)
  segments: str = chosen('turns', SOURCES)
  aggregation: Any = None  # a scalar loss is not aggregated
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj, logp_BT, adv_BT = ctx.policy_tokens()
    mask_BT = loss_mask(traj)
    change_BT = log_ratio(logp_BT, traj.logp_old_BT, mask_BT)
    start_BT = segment_starts(traj, self.segments)
    mean_BS, tokens_BS, _ = segment_means(change_BT, start_BT, mask_BT)
    advantage_BS, _, _ = segment_means(adv_BT, start_BT, mask_BT)
    error_BS = 0.5 * (advantage_BS / self.coef - mean_BS * tokens_BS) ** 2
    weight_BS = (tokens_BS > 0) * traj.weight_B[:, None]
    loss = masked_mean(error_BS, weight_BS)
    return LossOut(loss, {'policy/regression_error': loss})
