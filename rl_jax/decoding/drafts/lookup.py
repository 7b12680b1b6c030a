"""Drafts by repetition: what followed the last tokens when they came before."""

import jax.numpy as jnp

from rl_jax.types import Array

NOTHING = -1  # in a context: no token, equal to none


def repeated(context_WC: Array, end_W: Array, ngram: int, tokens: int) -> Array:
  """The next tokens of each row, guessed: int32[W, K], K = tokens.

  Of the places where the longest end of the row, up to ngram tokens, occurs
  before, the last one counts; the guess is what follows it, again and
  again if the row ends first. Without such a place it has no meaning.

  Source: prompt lookup (Saxena 2023, apoorvumang/prompt-lookup-decoding).

  Args:
    context_WC: tokens, NOTHING where there is none; those from end on are not
      read.
    end_W: the first place after each row, at least 1.
  """
  place_1C = jnp.arange(context_WC.shape[1])[None]
  end_W1 = end_W[:, None]
  same_WC, length_WC = True, jnp.zeros_like(context_WC)
  for back in range(ngram):
    last_W1 = jnp.take_along_axis(
      context_WC, end_W1 - 1 - back, axis=1, mode='clip'
    )
    earlier_WC = jnp.pad(
      context_WC, ((0, 0), (back, 0)), constant_values=NOTHING
    )[:, : context_WC.shape[1]]
    same_WC &= (earlier_WC == last_W1) & (last_W1 != NOTHING)
    length_WC += same_WC
  length_WC = jnp.where(place_1C < end_W1 - 1, length_WC, 0)
  longest_W1 = length_WC.max(axis=1, keepdims=True)
  found_WC = (length_WC == longest_W1) & (place_1C < end_W1 - 1)
  found_W1 = jnp.where(found_WC, place_1C, 0).max(axis=1, keepdims=True)
  period_W1 = jnp.maximum(end_W1 - 1 - found_W1, 1)
  next_WK = found_W1 + 1 + jnp.arange(tokens)[None] % period_W1
  return jnp.take_along_axis(context_WC, next_WK, axis=1, mode='clip')
