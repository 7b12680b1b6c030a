"""PAR: a learned reward as the probability of beating reference responses."""

from typing import ClassVar

import chex
from flax import struct
import jax
import jax.numpy as jnp

from rl_jax.checks import check_range
from rl_jax.pieces import row_inputs
from rl_jax.types import Array, Trajectories


@struct.dataclass(kw_only=True)
class ReferenceSigmoid:
  """R = mean_j sigmoid(k (r - ref_j)), r less a penalty on long responses.

    r = reward - length_coef * max(0, tokens - free_tokens)

  ref_j are the rewards of M fixed reference responses to the prompt, from
  extras['reference_reward_NM']. Bounded in (0, 1) and 1/2 at the reference.
  Source: "Reward Shaping to Mitigate Reward Hacking in RLHF"; PorUna-byte/PAR
  reward_shaper.py.
  Raises ValueError for values outside the ranges below.
  """

  k: float = 1.0  # per unit of reward, > 0
  length_coef: float = 0.01  # reward per token, >= 0
  free_tokens: float = 300.0  # >= 0
  role: ClassVar[str] = 'shaping'

  def __post_init__(self):
    check_range(self, 'k', 0.0, open_low=True)
    check_range(self, 'length_coef', 0.0)
    check_range(self, 'free_tokens', 0.0)

  def __call__(self, reward_B: Array, traj: Trajectories) -> Array:
    """[B] -> [B]."""
    chex.assert_rank(reward_B, 1)
    reference_NM = row_inputs.read(traj, 'reference_reward_NM')
    reference_BM = jnp.repeat(reference_NM, traj.group_size, axis=0)
    excess_B = traj.length_B.astype(jnp.float32) - self.free_tokens
    raw_B = reward_B - self.length_coef * jnp.maximum(excess_B, 0.0)
    return jax.nn.sigmoid(self.k * (raw_B[:, None] - reference_BM)).mean(1)
