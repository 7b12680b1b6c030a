"""Direct advantage: the value of a step against those of other candidates."""

from typing import ClassVar

import chex

from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import by_group, masked_center, ungroup
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Trajectories


@piece
class CandidateAdvantage:
  """A_i = V(s a_i) - mean_j V(s a_j) over the candidates of a state s.

  The rows of a group are candidates for one step; V is extras
  'candidate_value_B', of unshaped rewards, so the credit that comes in is not
  read. The mean is over the rows with 'candidate_B' 1; the others get 0. Both
  are filled by rollouts/wrappers/candidate_steps.py.
  Source: "Improving Multi-Step Reasoning Abilities of Large Language Models
  with Direct Advantage Policy Optimization", from the text.
  """

  role: ClassVar[str] = 'credit'
  min_group_size: ClassVar[int] = 2
  reads: ClassVar[dict[str, str]] = {
    'candidate_B': '1 on the rows whose step is a candidate of its own, else 0',
    'candidate_value_B': 'mean reward behind the step of the row',
  }

  def __call__(self, credit_B: Array, traj: Trajectories) -> Array:
    """[B] -> [B]."""
    chex.assert_rank(credit_B, 1)
    kept_B, value_B = (
      row_inputs.read(traj, key, self.reads[key]) for key in self.reads
    )
    grouped = lambda x: by_group(x, traj.group_size)
    kept_NG = grouped(kept_B * traj.valid_B)
    return ungroup(masked_center(grouped(value_B), kept_NG, axis=1))
