"""Prompts drawn uniformly, without regard to what was seen before."""

import jax
import jax.numpy as jnp

from rl_jax import randomness
from rl_jax.pieces.ops.batches import check_fits
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Selector
from rl_jax.types import Array, GroupSummary


@piece
class Uniform(Selector):
  """Each batch is a uniform draw without replacement inside the batch.

  The default of a Method without selector is a shuffled pass instead, which
  visits every prompt equally often. The state counts the draws per prompt.
  """

  def init(self, num_prompts: int) -> dict[str, Array]:
    """No prompt has been drawn."""
    return {'draws': jnp.zeros(num_prompts, jnp.int32)}

  def select(
    self, state: dict[str, Array], key: Array, count: int
  ) -> tuple[Array, dict[str, Array]]:
    """Returns int32[count] prompt ids and the new state.

    Raises:
      ValueError: count exceeds the number of prompts.
    """
    draws = state['draws']
    check_fits(count, draws.shape[0])
    # The key is that of the run: every batch needs its own numbers.
    key = jax.random.fold_in(key, draws.sum())
    ids = randomness.permuted(key, jnp.arange(count), draws.shape[0])
    return ids, {'draws': draws.at[ids].add(1)}

  def observe(
    self, state: dict[str, Array], ids: Array, summary: GroupSummary
  ) -> dict[str, Array]:
    """The state does not depend on what was sampled."""
    del ids, summary
    return state
