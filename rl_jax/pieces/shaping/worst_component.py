"""The reward that the samples serve worst takes the place of the reward."""

from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import masked_mean
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.types import static


@piece
class WorstComponent(Shaping):
  """R = r_u of all rows, u = argmin_u mean over valid rows of r_u.

  One component for the whole batch, the first of equal ones: the minimum of
  expectations, not the expectation of minima. Components need the same zero,
  as of rewards that are centred on a reference set.
  Source: "MaxMin-RLHF: Alignment with Diverse Human Preferences" (from memory
  of the paper; no official code was found).
  """

  components: tuple[str, ...] = static(default=('outcome', 'format'))

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    traj = ctx.traj
    reward_KB = row_inputs.components(self, traj)
    mean_K = masked_mean(reward_KB, traj.valid_B[None], axis=1)
    return CreditOut(reward_KB[mean_K.argmin()])
