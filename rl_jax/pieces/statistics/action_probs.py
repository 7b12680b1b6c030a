"""Probabilities of a few tokens at every place, with a gradient."""

import jax.numpy as jnp

from rl_jax.pieces.roles import Statistic, statistic
from rl_jax.pieces.statistics.chunk import Chunk
from rl_jax.types import Array

MOST_ACTIONS = 32


@statistic
class ActionProbs(Statistic):
  """pi(a | row, place) for the tokens a of `actions`, [B, T, A].

  They are probabilities among all tokens, so their sum may be below 1. Losses
  on expected values read them: a regret, or an expectation over actions.
  Raises: ValueError unless there are 1 to 32 different tokens.
  """

  actions: tuple[int, ...]
  name = 'action_probs'

  def __post_init__(self):
    different = len(set(self.actions)) == len(self.actions)
    if not different or not 1 <= len(self.actions) <= MOST_ACTIONS:
      raise ValueError(
        f'ActionProbs.actions = {self.actions!r:.80}: expected 1 to '
        f'{MOST_ACTIONS} different tokens'
      )

  def __call__(self, chunk: Chunk) -> Array:
    """[B, C, A]."""
    return jnp.exp(chunk.logp_BCV[..., jnp.asarray(self.actions)])
