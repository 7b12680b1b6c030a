"""A score of rows by the value head: what a scalar reward model learns."""

from typing import ClassVar

from rl_jax.pieces.ops.masking import last_token
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Trajectories


@piece
class FinalValue:
  """s = V(prompt and response), the value head behind the last trained token.

  With the link Sigmoid the loss is that of Bradley and Terry, -ls(s_win -
  s_lose). Source: TRL reward_trainer.py, OpenRLHF PairWiseLoss (by digests).
  """

  role: ClassVar[str] = 'score'
  needs: ClassVar[tuple[str, ...]] = ('values_after',)

  def __call__(self, stats: dict[str, Array], traj: Trajectories) -> Array:
    """[B]."""
    return last_token(stats['values_after'], traj.mask_BT)
