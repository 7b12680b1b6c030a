"""Mean and deviation of all numbers of a stream, by Chan's update."""

import jax.numpy as jnp

from rl_jax.pieces.ops.masking import (
  masked_mean,
  masked_min,
  masked_var,
  safe_divide,
  safe_sqrt,
)
from rl_jax.types import Array


def none() -> dict[str, Array]:
  """The state before any number: all zeros."""
  return {name: jnp.zeros(()) for name in ('count', 'mean', 'squares')}


def merged(state: dict[str, Array], x: Array, mask: Array) -> dict[str, Array]:
  """Adds the x where mask is 1; exact for any split of the stream.

  State: count, mean, and the sum of squared deviations from it, which is
  exactly 0 where all numbers are equal.
  """
  added = mask.sum()
  # The smallest is taken off first, so that equal x have exactly that mean.
  low = masked_min(x, mask)
  mean = low + masked_mean(x - low, mask)
  count = state['count'] + added
  step = mean - state['mean']
  between = step**2 * safe_divide(state['count'] * added, count)
  within = masked_var(x, mask) * added
  return {
    'count': count,
    'mean': state['mean'] + step * safe_divide(added, count),
    'squares': state['squares'] + within + between,
  }


def deviation(state: dict[str, Array]) -> Array:
  """Standard deviation, ddof 1; 0 of a single number."""
  return safe_sqrt(state['squares'] / jnp.maximum(state['count'] - 1.0, 1.0))
