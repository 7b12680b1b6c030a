"""Compaction of the real tokens of each group, to skip padding in layers.

  places  [N, L, ...]  all tokens of a group, real ones and padding
  slots   [N, C, ...]  its real ones in the same order, followed by zeros

Layers that treat every token separately run on slots. Packing and unpacking are
partial permutations within a group, each the transpose of the other: gradients
are gathers too, and groups on different devices need no communication.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.types import Array

Move = Callable[[Array], Array]
# Tokens of a response; for shorter ones, compiling a second program costs more
# than packing saves.
SHORTEST = 32


def capacity(length_NG: np.ndarray, tokens: int) -> int | None:
  """Slots for the fed tokens of every group: half of the places, or None.

  A response of `length` tokens, out of `tokens` places, feeds length - 1 tokens
  to the model. None: the tokens of some group do not fit, or responses are
  shorter than SHORTEST. There is one value per configuration, so that a run has
  at most two programs.
  """
  if tokens < SHORTEST:
    return None
  places = length_NG.shape[1] * (tokens - 1)
  half = -(-places // 2)
  fed_N = np.maximum(length_NG - 1, 0).sum(axis=1)
  return half if fed_N.max() <= half else None


def movers(real_NL: Array, slots: int | None) -> tuple[Move, Move]:
  """(pack, unpack): [N, L, ...] -> [N, slots, ...] and back.

  Slots without a token and places that are not real become 0. Tokens beyond
  `slots` are dropped. None: both functions are the identity.
  """
  if slots is None:
    return (lambda x: x), (lambda x: x)
  slots, real_NL = min(slots, real_NL.shape[1]), real_NL > 0
  rank_NL = jnp.cumsum(real_NL, axis=1, dtype=jnp.int32) - 1
  to_places = (jnp.clip(rank_NL, 0, slots - 1), real_NL & (rank_NL < slots))
  source_NC = jnp.argsort(~real_NL, axis=1, stable=True)[:, :slots]
  used_NC = jnp.arange(slots)[None] <= rank_NL[:, -1:]
  to_slots = (source_NC, used_NC)
  return (
    lambda x: _move(x, to_slots, to_places),
    lambda x: _move(x, to_places, to_slots),
  )


@jax.custom_vjp
def _move(x: Array, there: tuple, back: tuple) -> Array:
  """x at the indices of `there` where its mask is true, else 0."""
  del back
  index_NM, on_NM = there

  def take(x, index_M):
    return x.at[index_M].get(mode='promise_in_bounds')

  on = on_NM.reshape(*on_NM.shape, *(1,) * (x.ndim - 2))
  return jnp.where(on, jax.vmap(take)(x, index_NM), 0)


_move.defvjp(
  lambda x, there, back: (_move(x, there, back), (there, back)),
  lambda saved, g: (_move(g, *saved[::-1]), None, None),
)
