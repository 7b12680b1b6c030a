"""Probabilities of the tokens of the whole group at every place."""

import jax.numpy as jnp

from rl_jax.pieces.roles import Statistic, statistic
from rl_jax.pieces.statistics.chunk import Chunk
from rl_jax.types import Array


@statistic
class GroupProbs(Statistic):
  """pi(u | row, place) for all response tokens u of the group, [B, T, G * T].

  Source: what THR and NTHR need of the vocabulary ("Token Hidden Reward").
  """

  name = 'group_probs'
  by_place = True

  def __call__(self, chunk: Chunk) -> Array:
    """[B, C, U]."""
    rows = chunk.logits_BCV.shape[0] // chunk.group_tokens_NU.shape[0]
    token_BU = jnp.repeat(chunk.group_tokens_NU, rows, axis=0)
    return jnp.exp(
      jnp.take_along_axis(chunk.logp_BCV, token_BU[:, None, :], axis=-1)
    )
