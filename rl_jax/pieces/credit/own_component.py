"""Parrot: each sample counts for the reward that its prompt names."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import masked_center, masked_var, safe_sqrt
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.types import static


@piece
class OwnComponent(Credit):
  """A_i = (r_i^k - mean^k) / (std^k + eps), k the reward that the prompt names.

  Mean and deviation of each component are those of all valid rows of the batch.
  A row whose prompt names none has the sum over all components; if no prompt
  names one, this is ComponentScale over the batch with weights of 1. Replaces
  the credit.
  Source: "Parrot: Pareto-optimal Multi-Reward Reinforcement Learning Framework
  for Text-to-Image Generation", reconstructed.
  """

  components: tuple[str, ...] = static(default=('outcome', 'format'))
  eps: float = ranged(1e-6, 0.0, open_low=True)  # in units of the reward
  reads = {
    'identifier_B': 'number, from 0, of the reward that the prompt names; '
    'below 0: none (tasks.RewardIdentifiers)'
  }

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()
    own_B = row_inputs.read(traj, 'identifier_B', self.reads['identifier_B'])
    total_B = jnp.zeros_like(credit_B)
    for k, reward_B in enumerate(row_inputs.components(self, traj)):
      centered_B = masked_center(reward_B, traj.valid_B, axis=0)
      var = masked_var(reward_B, traj.valid_B, axis=0, ddof=1)
      counts_B = (own_B == k) | (own_B < 0)
      scaled_B = centered_B / (safe_sqrt(var) + self.eps)
      total_B += jnp.where(counts_B, scaled_B, 0.0)
    return CreditOut(total_B)
