"""A linear change of the reward's range."""

from typing import ClassVar

from rl_jax.checks import ranged
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Trajectories


@piece
class Affine:
  """scale * R + offset on every row, for example 0/1 rewards to -1/+1."""

  scale: float = ranged(1.0)
  offset: float = ranged(0.0)
  role: ClassVar[str] = 'shaping'

  def __call__(self, reward_B: Array, traj: Trajectories) -> Array:
    """[B] -> [B]."""
    del traj
    return self.scale * reward_B + self.offset
