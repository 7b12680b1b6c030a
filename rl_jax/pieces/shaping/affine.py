"""A linear change of the reward's range."""

from rl_jax.checks import ranged
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping


@piece
class Affine(Shaping):
  """scale * R + offset on every row, for example 0/1 rewards to -1/+1."""

  scale: float = ranged(1.0)
  offset: float = ranged(0.0)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B = ctx.credit
    return CreditOut(self.scale * reward_B + self.offset)
