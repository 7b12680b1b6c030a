"""A reward model learns where it separates the samples of a policy."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import by_group, safe_divide
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Shift

_KEY = (
  'unlabelled_B',
  '1 on samples of a policy beside labelled responses, else 0; filled by rows '
  'from data with `samples`',
)


@piece
class SampleSpread(Shift):
  """step J, by whose gradient parameters move before that of the pairs.

    J = mean over prompts of (2 / k^2) sum_{i < j} sigmoid(|s_i - s_j|)

  s are the scores of k samples of a policy beside the labelled responses to the
  prompt (`samples` of tasks.PreferenceRows); prompts with fewer than two count
  nowhere. step 0 is the loss on pairs. Source: MetaRM of Wang et al., "Secrets
  of RLHF Part II: Reward Modeling", 2024, by memory of the report:
  reconstructed, the step is ours.
  """

  score: Any  # preferences.FinalValue
  step: float = ranged(0.01, 0.0)
  aggregation: Any = None  # a scalar loss is not aggregated
  per_group = True  # the number of prompts does not depend on the model
  reads = dict((_KEY,))

  @property
  def needs(self) -> tuple[Any, ...]:
    """The statistics that the score reads."""
    return self.score.needs

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    sample_B = row_inputs.read(traj, *_KEY) * traj.valid_B
    sample_B = sample_B * (traj.mask_BT > 0).any(axis=1)
    score_NG, sample_NG = (
      by_group(x, traj.group_size) for x in (self.score(ctx), sample_B)
    )
    both_NGG = sample_NG[:, :, None] * sample_NG[:, None]
    both_NGG = jnp.triu(both_NGG, 1)
    gap_NGG = jnp.abs(score_NG[:, :, None] - score_NG[:, None])
    gap_NGG = jnp.where(both_NGG > 0, gap_NGG, 0.0)
    sum_N = (both_NGG * jax.nn.sigmoid(gap_NGG)).sum((1, 2))
    count_N = sample_NG.sum(1)
    spread_N = safe_divide(2.0 * sum_N, count_N**2)
    spread = safe_divide(spread_N.sum(), (count_N > 1).sum())
    return LossOut(self.step * spread, {'preference/sample_spread': spread})
