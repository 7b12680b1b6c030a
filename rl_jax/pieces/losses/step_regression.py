"""Direct advantage: log-ratios of whole steps are fitted to advantages."""

from typing import Any, ClassVar

import chex

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import loss_mask, masked_mean, safe_divide
from rl_jax.pieces.ops.ratios import log_ratio
from rl_jax.pieces.ops.sequences import run_starts, run_sum
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Metrics, Trajectories


@piece
class StepRegression:
  """L = 1/2 mean over steps of (A / coef - sum_t (logp_t - logp_old_t))^2.

  A step is a maximal run of trained tokens (an action between observations;
  the whole response in one turn) and A the mean of its tokens' advantages. The
  mean over steps is weighted by row.
  Source: "Improving Multi-Step Reasoning Abilities of Large Language Models
  with Direct Advantage Policy Optimization", from the text; its steps are
  lines and its advantages come from a critic trained beforehand.
  """

  # Advantage per nat; smaller moves farther.
  coef: float = ranged(0.01, 0.0, open_low=True)
  aggregation: Any = None  # a scalar loss is not aggregated
  role: ClassVar[str] = 'policy'
  per_token: ClassVar[bool] = False

  def __call__(
    self, stats: dict[str, Array], traj: Trajectories, key: Array
  ) -> tuple[Array, Metrics]:
    """A scalar."""
    del key
    logp_BT, adv_BT = stats['logp'], traj.advantages_BT
    chex.assert_equal_shape([logp_BT, adv_BT, traj.logp_old_BT, traj.mask_BT])
    mask_BT = loss_mask(traj)
    change_BT = log_ratio(logp_BT, traj.logp_old_BT, mask_BT)
    step_BT = run_sum(change_BT, mask_BT)
    advantage_BT = safe_divide(
      run_sum(adv_BT, mask_BT), run_sum(mask_BT, mask_BT)
    )
    error_BT = 0.5 * (advantage_BT / self.coef - step_BT) ** 2
    # Every token of a step holds its sums; the first one represents the step.
    weight_BT = run_starts(mask_BT) * traj.weight_B[:, None]
    loss = masked_mean(error_BT, weight_BT)
    return loss, {'policy/regression_error': loss}
