"""The recurrence of every value-based or segment-based credit."""

from typing import Any

import jax

from rl_jax.types import Array


def reverse_linear_scan(b_BT: Array, decay_BT: Array) -> Array:
  """A_t = b_t + decay_t * A_{t+1}, with A = 0 after the last column."""

  def combine(later: Any, earlier: Any):
    (decay_x, b_x), (decay_y, b_y) = later, earlier
    return decay_x * decay_y, b_y + decay_y * b_x

  # A negative axis is not accepted together with reverse=True.
  _, total_BT = jax.lax.associative_scan(
    combine, (decay_BT, b_BT), reverse=True, axis=1
  )
  return total_BT
