"""Direct advantage: the critic learns how often a step leads to the answer."""

from typing import Any

import jax

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import last_token, masked_mean
from rl_jax.pieces.ops.sequences import row_weight
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, ValueLoss


@piece
class CandidateValue(ValueLoss):
  """coef * mean over states of -(q log sigmoid(V) + (1 - q) log sigmoid(-V)).

  A state is that after the candidate step of a row, V the value head there,
  and q, from 0 to 1, the mean reward of the completions from it (extras
  'candidate_value_B'). Responses that end with their step have no such state.
  Source: "Improving Multi-Step Reasoning Abilities of Large Language Models
  with Direct Advantage Policy Optimization", from the text (soft cross-entropy
  on success rates of 16 completions).
  """

  coef: float = ranged(1.0, 0.0)
  aggregation: Any = None  # a scalar loss is not aggregated
  needs = ('values_after',)

  def __call__(self, ctx: LossContext) -> LossOut:
    """A scalar."""
    traj = ctx.traj
    rate_B = row_inputs.read(traj, 'candidate_value_B').clip(0.0, 1.0)
    ends_B = row_inputs.read(traj, 'candidate_ends_B')
    weight_B = row_weight(traj) * (1.0 - ends_B)
    value_B = last_token(ctx.stats['values_after'], traj.mask_BT)
    # -q log sigmoid(V) - (1 - q) log sigmoid(-V)
    loss_B = jax.nn.softplus(value_B) - rate_B * value_B
    error_B = jax.nn.sigmoid(value_B) - rate_B
    return LossOut(
      self.coef * masked_mean(loss_B, weight_B),
      {'value/error': masked_mean(error_B**2, weight_B)},
    )
