"""A soft penalty for responses that come near the length limit."""

from typing import ClassVar

import chex
from flax import struct
import jax.numpy as jnp

from rl_jax.checks import check_range
from rl_jax.types import Array, Trajectories


@struct.dataclass(kw_only=True)
class OverlongPenalty:
  """R + coef * min((max_tokens - buffer_tokens - length) / buffer_tokens, 0).

  No penalty up to max_tokens - buffer_tokens, then linear down to -coef at
  max_tokens. Lengths are response tokens, not characters.
  Source: DAPO, section 3.4; verl recipe reward_manager/dapo.py.
  Raises ValueError for values outside the ranges below.
  """

  max_tokens: float = 20480.0  # > 0; the limit on response tokens
  buffer_tokens: float = 4096.0  # > 0
  coef: float = 1.0  # in units of the reward, >= 0
  role: ClassVar[str] = 'shaping'

  def __post_init__(self):
    check_range(self, 'max_tokens', 0.0, open_low=True)
    check_range(self, 'buffer_tokens', 0.0, open_low=True)
    check_range(self, 'coef', 0.0)

  def __call__(self, reward_B: Array, traj: Trajectories) -> Array:
    """[B] -> [B]."""
    chex.assert_rank(reward_B, 1)
    length_B = traj.length_B.astype(jnp.float32)
    excess_B = length_B - (self.max_tokens - self.buffer_tokens)
    return reward_B + self.coef * jnp.minimum(
      -excess_B / self.buffer_tokens, 0.0
    )
