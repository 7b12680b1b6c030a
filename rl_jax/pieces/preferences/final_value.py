"""A score of rows by the value head: what a scalar reward model learns."""

from rl_jax.pieces.ops.masking import last_token
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, Score
from rl_jax.types import Array


@piece
class FinalValue(Score):
  """s = V(prompt and response), the value head after the last trained token.

  With the link Sigmoid the loss is that of Bradley and Terry, -ls(s_win -
  s_lose). Source: TRL reward_trainer.py, OpenRLHF PairWiseLoss (by digests).
  """

  needs = ('values_after',)

  def __call__(self, ctx: LossContext) -> Array:
    """[B]."""
    return last_token(ctx.stats['values_after'], ctx.traj.mask_BT)
