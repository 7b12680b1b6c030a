"""Random numbers that are functions of counters, never of array shapes.

Every draw depends on (run key, group serial, sample index, token index,
purpose) only, so padding, row order, batch composition, slots and devices
cannot change it (tier E2).
"""

import jax
import jax.numpy as jnp

from rl_jax.types import Array

# Purposes: folded into the run key first, so that no two uses share numbers.
SAMPLING, PIECES, MINIBATCHES, SELECTION, EVALUATION, INIT, CUTS = range(7)

_FEISTEL_ROUNDS = 6


def purpose_key(key: Array, purpose: int, counter: Array | int = 0) -> Array:
  """The key of one purpose at one counter (an iteration, say)."""
  return jax.random.fold_in(jax.random.fold_in(key, purpose), counter)


def row_keys(key: Array, row_id_B2: Array) -> Array:
  """One key per row from its (group serial, sample index)."""

  def one(row_id_2):
    return jax.random.fold_in(jax.random.fold_in(key, row_id_2[0]), row_id_2[1])

  return jax.vmap(one)(row_id_B2)


def token_uniform(row_keys_B: Array, position_B: Array, draw: int = 0) -> Array:
  """One uniform in [0, 1) per row for the token at position_B.

  draw: its number, where a token needs several.
  """
  keys_B = jax.vmap(jax.random.fold_in)(row_keys_B, position_B)
  if draw:
    keys_B = jax.vmap(lambda k: jax.random.fold_in(k, draw))(keys_B)
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


def permuted(key: Array, position_B: Array, size: int) -> Array:
  """Entries at position_B of a permutation of range(size) drawn from key.

  Costs as much as the positions asked for, however large the size is: a Feistel
  network permutes the next larger power of 4, and what falls outside
  range(size) is permuted again until it falls inside.
  """
  half = max(1, ((size - 1).bit_length() + 1) // 2)
  low = jnp.uint32((1 << half) - 1)
  rounds = jax.random.bits(key, (_FEISTEL_ROUNDS,), jnp.uint32)

  def network(x):
    left, right = x >> half, x & low
    for salt in rounds:
      left, right = right, left ^ (_mix(right ^ salt) & low)
    return left << half | right

  def outside(x):
    return x >= size

  x_B = network(position_B.astype(jnp.uint32))
  x_B = jax.lax.while_loop(
    lambda x: outside(x).any(),
    lambda x: jnp.where(outside(x), network(x), x),
    x_B,
  )
  return x_B.astype(jnp.int32)


def _mix(x: Array) -> Array:
  """A bijection of uint32 that spreads every bit (MurmurHash3's finalizer)."""
  x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
  x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
  return x ^ (x >> 16)
