"""PPO-max's switch for advantages that stay within a bound."""

from typing import ClassVar

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Trajectories


@piece
class ClipAdvantage:
  """clip(A, -limit, limit), by row or by token.

  Source: "Secrets of RLHF in Large Language Models Part I: PPO"; OpenLMLab/
  MOSS-RLHF ppo_trainer.py, behind whitening.
  """

  limit: float = ranged(0.5, 0.0, open_low=True)  # in units of the advantage
  role: ClassVar[str] = 'credit'

  def __call__(self, credit: Array, traj: Trajectories) -> Array:
    """[B] -> [B] or [B, T] -> [B, T]."""
    del traj
    return jnp.clip(credit, -self.limit, self.limit)
