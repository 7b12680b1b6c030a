"""Parrot: only samples that no other one dominates are learned from."""

import chex

from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import by_group, safe_divide
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.types import static


@piece
class ParetoFront(Credit):
  """A_i * (rows / rows of the front) on the group's front, 0 elsewhere.

  A row is dominated if another valid row of its group is at least as good in
  every component and better in one. The factor makes the mean over rows one
  over the front. One component keeps the best rows alone.
  Source: "Parrot: Pareto-optimal Multi-Reward Reinforcement Learning Framework
  for Text-to-Image Generation" (reconstructed; there the front is of a batch of
  one prompt, and every reward has its own identifier in the prompt).
  """

  components: tuple[str, ...] = static(default=('outcome', 'format'))
  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.credit, ctx.traj
    chex.assert_rank(credit_B, 1)
    reward_KB = row_inputs.components(self, traj)
    reward_NGK = by_group(reward_KB.T, traj.group_size)
    valid_NG = by_group(traj.valid_B, traj.group_size) > 0
    # [N, G, G]: does the second row dominate the first?
    own, other = reward_NGK[:, :, None], reward_NGK[:, None]
    above_NGG = (other >= own).all(-1) & (other > own).any(-1)
    front_NG = valid_NG & ~(above_NGG & valid_NG[:, None]).any(2)
    count_N1 = front_NG.sum(1, keepdims=True)
    factor_NG = safe_divide(valid_NG.sum(1, keepdims=True), 1.0 * count_N1)
    return CreditOut(credit_B * (front_NG * factor_NG).ravel())
