"""Direct advantage: the value of a step against those of other candidates."""

import jax
import jax.numpy as jnp

from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import (
  by_group,
  last_token,
  masked_center,
  ungroup,
)
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.types import Array, static


@piece
class CandidateAdvantage(Credit):
  """A_i = V(s a_i) - mean_j V(s a_j) over the candidates of a state s.

  The rows of a group are candidates for one step; V is extras
  'candidate_value_B', the mean reward of completions. With `critic` it is
  sigmoid of the value head after the step (trained by losses.CandidateValue),
  and that reward only where the response ends with the step. Rewards are
  unshaped: the credit that comes in is not read. The mean is over the rows with
  'candidate_B' 1; the others get 0. rollouts/wrappers/candidate_steps.py fills
  the extras.
  Source: "Improving Multi-Step Reasoning Abilities of Large Language Models
  with Direct Advantage Policy Optimization", from the text.
  """

  critic: bool = static(default=False)
  min_group_size = 2

  @property
  def needs(self) -> tuple[str, ...]:
    """The value head, if it gives the values."""
    return ('values_after',) if self.critic else ()

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()
    value_B = row_inputs.read(traj, 'candidate_value_B')
    if self.critic:
      after_BT = row_inputs.read(traj, 'values_after')
      head_B = jax.nn.sigmoid(last_token(after_BT, traj.mask_BT))
      ends_B = row_inputs.read(traj, 'candidate_ends_B')
      value_B = jnp.where(ends_B > 0, value_B, head_B)
    kept_B = row_inputs.read(traj, 'candidate_B') * traj.valid_B

    def grouped(x: Array):
      return by_group(x, traj.group_size)

    return CreditOut(
      ungroup(masked_center(grouped(value_B), grouped(kept_B), axis=1))
    )
