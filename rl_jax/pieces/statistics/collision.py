"""Collision: how likely the distribution's own token is on average."""

import jax

from rl_jax.pieces.roles import Statistic, statistic
from rl_jax.pieces.statistics.chunk import Chunk
from rl_jax.types import Array


@statistic
class Collision(Statistic):
  """log sum_v pi(v)^2, in nats, [B, T]: of one token of V at least -log V.

  Source: WPO's weight adjustment (TRL dpo_trainer.py, by a digest).
  """

  name = 'collision'

  def __call__(self, chunk: Chunk) -> Array:
    """[B, C]."""
    twice_BC = jax.nn.logsumexp(2.0 * chunk.logits_BCV, axis=-1)
    return twice_BC - 2.0 * chunk.log_z_BC
