"""A linear change of the reward's range."""

from typing import ClassVar

from flax import struct

from rl_jax.checks import check_range
from rl_jax.types import Array, Trajectories


@struct.dataclass(kw_only=True)
class Affine:
  """scale * R + offset on every row, for example 0/1 rewards to -1/+1.

  Raises ValueError unless both are numbers.
  """

  scale: float = 1.0
  offset: float = 0.0
  role: ClassVar[str] = 'shaping'

  def __post_init__(self):
    check_range(self, 'scale')
    check_range(self, 'offset')

  def __call__(self, reward_B: Array, traj: Trajectories) -> Array:
    """[B] -> [B]."""
    del traj
    return self.scale * reward_B + self.offset
