"""Passes over the prompts, each in a new order: the default selector."""

import jax
import jax.numpy as jnp

from rl_jax import randomness
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Selector
from rl_jax.types import Array, GroupSummary


@piece
class ShuffledPass(Selector):
  """Every prompt once per pass; a batch may cross into the next pass.

  The order of pass e is a permutation drawn from (key, e) only, so the state
  is a single position and a resumed run draws the same prompts.
  """

  def init(self, num_prompts: int) -> dict[str, Array]:
    """Position 0 of pass 0; the size travels with the state."""
    return {
      'position': jnp.zeros((), jnp.int32),
      'visits': jnp.zeros(num_prompts, jnp.int32),
    }

  def select(
    self, state: dict[str, Array], key: Array, count: int
  ) -> tuple[Array, dict[str, Array]]:
    """Returns int32[count] prompt indices and the new state."""
    size = state['visits'].shape[0]
    position = state['position'] + jnp.arange(count, dtype=jnp.int32)

    def entry(position: Array):
      pass_key = jax.random.fold_in(key, position // size)
      return randomness.permuted(pass_key, position % size, size)

    ids = jax.vmap(entry)(position)
    return ids, {
      'position': state['position'] + count,
      'visits': state['visits'].at[ids].add(1),
    }

  def observe(
    self, state: dict[str, Array], ids: Array, summary: GroupSummary
  ) -> dict[str, Array]:
    """The state does not depend on what was sampled."""
    del ids, summary
    return state
