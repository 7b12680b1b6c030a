"""Random numbers that are functions of counters, never of array shapes.

Every draw depends on (run key, group serial, sample index, token index,
purpose) alone, so padding, row order, batch composition, slots and devices
cannot change it (tier E2).
"""

import jax
import jax.numpy as jnp

from rl_jax.types import Array

# Purposes: folded into the run key first, so that no two uses share numbers.
SAMPLING, PIECES, MINIBATCHES, SELECTION, EVALUATION, INIT = range(6)


def purpose_key(key: Array, purpose: int, counter: Array | int = 0) -> Array:
  """The key of one purpose at one counter (an iteration, say)."""
  return jax.random.fold_in(jax.random.fold_in(key, purpose), counter)


def row_keys(key: Array, row_id_B2: Array) -> Array:
  """One key per row from its (group serial, sample index)."""

  def one(row_id_2):
    return jax.random.fold_in(jax.random.fold_in(key, row_id_2[0]), row_id_2[1])

  return jax.vmap(one)(row_id_B2)


def token_uniform(row_keys_B: Array, position_B: Array) -> Array:
  """One uniform in [0, 1) per row for the token at position_B."""
  keys_B = jax.vmap(jax.random.fold_in)(row_keys_B, position_B)
  return jax.vmap(lambda k: jax.random.uniform(k, ()))(keys_B)


def row_token_uniform(key: Array, row_id_B2: Array, length: int) -> Array:
  """Uniforms in [0, 1), f32[B, T], the same for a row at any padding."""
  keys_B = row_keys(key, row_id_B2)
  positions_T = jnp.arange(length)
  return jax.vmap(
    lambda position: token_uniform(
      keys_B, jnp.full(keys_B.shape[:1], position)
    ),
    out_axes=1,
  )(positions_T)
