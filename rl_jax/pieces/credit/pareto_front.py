"""Parrot: only samples that no other one dominates are learned from."""

from rl_jax.checks import chosen
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import by_group, safe_divide
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.types import static


@piece
class ParetoFront(Credit):
  """A_i * (rows / rows of the front) on the front, 0 elsewhere.

  A row is dominated if another valid row, of its group or of the batch (see
  `over`), is at least as good in every component and better in one. The factor
  makes the mean over rows one over the front. One component keeps only the best
  rows. In a batch a prompt whose responses are all dominated is not trained.
  Source: "Parrot: Pareto-optimal Multi-Reward Reinforcement Learning Framework
  for Text-to-Image Generation" (reconstructed; by batch, and every reward has
  its own identifier in the prompt; groups are of this code).
  """

  components: tuple[str, ...] = static(default=('outcome', 'format'))
  over: str = chosen('group', ('group', 'batch'))

  @property
  def min_group_size(self) -> int:
    """Only a front of the group needs two samples of a prompt."""
    return 2 if self.over == 'group' else 1

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()
    reward_KB = row_inputs.components(self, traj)
    size = traj.group_size if self.over == 'group' else len(credit_B)
    reward_NGK = by_group(reward_KB.T, size)
    valid_NG = by_group(traj.valid_B, size) > 0
    # [N, G, G]: does the second row dominate the first?
    own, other = reward_NGK[:, :, None], reward_NGK[:, None]
    above_NGG = (other >= own).all(-1) & (other > own).any(-1)
    front_NG = valid_NG & ~(above_NGG & valid_NG[:, None]).any(2)
    count_N1 = front_NG.sum(1, keepdims=True)
    factor_NG = safe_divide(valid_NG.sum(1, keepdims=True), 1.0 * count_N1)
    return CreditOut(credit_B * (front_NG * factor_NG).ravel())
