"""Jittable verifiers on tokens; each agrees with a host verifier on text.

The text of a response is what the tokenizer decodes from the tokens before the
first end token. Padding and ids without a character decode to nothing, so the
masks here leave them out as well.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.types import Array

# Codes of characters in the flat countdown grammar; 0..9 are digits.
_PLUS, _MINUS, _TIMES, _OTHER = 10, 11, 12, 13


def pad_rows(rows: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
  """Lists of integers as (i32[B, A] padded with 0, lengths i32[B])."""
  width = max((len(row) for row in rows), default=1)
  padded = np.zeros((len(rows), max(width, 1)), np.int32)
  for i, row in enumerate(rows):
    padded[i, : len(row)] = row
  return padded, np.asarray([len(row) for row in rows], np.int32)


def answer_tokens(
  examples: Sequence[Any], tokenizer: Any
) -> tuple[np.ndarray, np.ndarray]:
  """(answer tokens i32[B, A], their number i32[B])."""
  return pad_rows([tokenizer.encode(example.answer) for example in examples])


def text_mask(response_BT: Array, length_B: Array, tokenizer: Any) -> Array:
  """bool[B, T]: tokens that decode to text, before the first end token."""
  at_T = jnp.arange(response_BT.shape[1], dtype=length_B.dtype)
  inside_BT = at_T[None, :] < length_B[:, None]
  ends_BT = jnp.zeros_like(inside_BT)
  for eos in tokenizer.eos_ids:
    ends_BT |= response_BT == eos
  before_BT = jnp.cumsum(ends_BT & inside_BT, axis=1) == 0
  visible_V = jnp.asarray(_visible(tokenizer))
  known_BT = (response_BT >= 0) & (response_BT < visible_V.shape[0])
  seen_BT = visible_V[jnp.clip(response_BT, 0, visible_V.shape[0] - 1)]
  return inside_BT & before_BT & known_BT & seen_BT


def exact_match(
  response_BT: Array, kept_BT: Array, answer_BA: Array, answer_length_B: Array
) -> Array:
  """f32[B]: 1 if the kept tokens are the answer's tokens."""
  rank_BT = jnp.cumsum(kept_BT, axis=1) - 1
  last = answer_BA.shape[1] - 1
  expected_BT = jnp.take_along_axis(
    answer_BA, jnp.clip(rank_BT, 0, last), axis=1
  )
  same_BT = (expected_BT == response_BT) & (rank_BT < answer_length_B[:, None])
  right_B = jnp.all(same_BT | ~kept_BT, axis=1)
  complete_B = jnp.sum(kept_BT, axis=1) == answer_length_B
  return (right_B & complete_B).astype(jnp.float32)


def one_of(
  response_BT: Array, kept_BT: Array, ids: Sequence[int]
) -> tuple[Array, Array]:
  """(its place in ids i32[B], is one of them and nothing else bool[B])."""
  first_B1 = jnp.argmax(kept_BT, axis=1)[:, None]
  token_B1 = jnp.take_along_axis(response_BT, first_B1, axis=1)
  same_BA = token_B1 == jnp.asarray(ids)[None, :]
  valid_B = (jnp.sum(kept_BT, axis=1) == 1) & jnp.any(same_BA, axis=1)
  return jnp.argmax(same_BA, axis=1), valid_B


def decimal(
  response_BT: Array,
  kept_BT: Array,
  tokenizer: Any,
  most_digits: int,
  reverse: bool,
) -> tuple[Array, Array, Array]:
  """(absolute value i32[B], has a minus bool[B], is a number bool[B]).

  Grammar: one to most_digits (at most 9) digits after an optional minus;
  reverse: written from the last character to the first.
  """
  code_V = jnp.asarray(_character_codes(tokenizer))
  code_BT = code_V[jnp.clip(response_BT, 0, code_V.shape[0] - 1)]
  count_B1 = jnp.sum(kept_BT, axis=1, keepdims=True)
  place_BT = jnp.cumsum(kept_BT, axis=1) - 1
  if not reverse:
    place_BT = count_B1 - 1 - place_BT
  is_digit_BT = kept_BT & (code_BT < 10)
  is_minus_BT = kept_BT & (code_BT == _MINUS) & (place_BT == count_B1 - 1)
  digits_B = jnp.sum(is_digit_BT, axis=1)
  power_BT = 10 ** jnp.clip(place_BT, 0, most_digits - 1)
  value_B = jnp.sum(jnp.where(is_digit_BT, code_BT * power_BT, 0), axis=1)
  valid_B = jnp.all(is_digit_BT | is_minus_BT | ~kept_BT, axis=1)
  valid_B &= (digits_B >= 1) & (digits_B <= most_digits)
  return value_B, jnp.any(is_minus_BT, axis=1), valid_B


def flat_expression(
  response_BT: Array,
  kept_BT: Array,
  answer_BA: Array,
  answer_length_B: Array,
  tokenizer: Any,
) -> tuple[Array, Array]:
  """(solved f32[B], in the grammar f32[B]) of a flat countdown.

  answer_BA holds the target, then the given digits. Grammar: digit (op digit)*
  with op one of + - *, the usual precedence, each given digit used once:
  value = sum over terms of sign * product of the term's digits.
  """
  code_V = jnp.asarray(_character_codes(tokenizer))
  in_vocabulary_BT = jnp.clip(response_BT, 0, code_V.shape[0] - 1)
  code_BT = code_V[in_vocabulary_BT]
  index_A = jnp.arange(answer_BA.shape[1])
  is_given_BA = (index_A[None] >= 1) & (
    index_A[None] < answer_length_B[:, None]
  )
  digits_B1 = jax.nn.one_hot(answer_BA, 10, dtype=jnp.int32)
  unused_BD = jnp.sum(jnp.where(is_given_BA[:, :, None], digits_B1, 0), axis=1)
  zero_B = jnp.zeros_like(answer_length_B)
  start = dict(
    total=zero_B,  # finished terms
    term=zero_B,  # signed product of the open term
    op=zero_B + _PLUS,
    unused=unused_BD,
    wants_digit=zero_B == 0,
    legal=zero_B == 0,
  )
  end, _ = jax.lax.scan(_read, start, (code_BT.T, kept_BT.T))
  all_used_B = jnp.all(end['unused'] == 0, axis=1)
  right_B = end['total'] + end['term'] == answer_BA[:, 0]
  legal_B = end['legal'] & ~end['wants_digit']
  solved_B = legal_B & all_used_B & right_B
  return solved_B.astype(jnp.float32), legal_B.astype(jnp.float32)


def _read(state, step):
  """One character of every row; dropped tokens change nothing."""
  code_B, kept_B = step
  is_digit_B = code_B < 10
  is_op_B = (code_B >= 10) & (code_B < _OTHER)
  legal_B = jnp.where(state['wants_digit'], is_digit_B, is_op_B)
  times_B = state['op'] == _TIMES
  sign_B = jnp.where(state['op'] == _MINUS, -1, 1)
  opened = dict(
    total=jnp.where(times_B, state['total'], state['total'] + state['term']),
    term=jnp.where(times_B, state['term'], sign_B) * code_B,
    unused=state['unused'] - jax.nn.one_hot(code_B, 10, dtype=jnp.int32),
  )
  new = dict(
    {
      name: jnp.where(
        _like(is_digit_B, opened[name]), opened[name], state[name]
      )
      for name in opened
    },
    op=jnp.where(is_digit_B, state['op'], code_B),
    wants_digit=~is_digit_B,
    legal=state['legal'] & legal_B,
  )
  return {
    name: jnp.where(_like(kept_B, new[name]), new[name], state[name])
    for name in state
  }, None


def _like(flag_B, array):
  return flag_B.reshape(flag_B.shape + (1,) * (array.ndim - 1))


def _visible(tokenizer) -> np.ndarray:
  """bool[V]: ids that decode to some text."""
  ids = range(tokenizer.vocab_size)
  return np.asarray([tokenizer.decode([i]) != '' for i in ids])


def _character_codes(tokenizer) -> np.ndarray:
  """i32[V]: the code of the character that an id decodes to."""
  codes = {c: i for i, c in enumerate('0123456789+-*')}
  ids = range(tokenizer.vocab_size)
  return np.asarray(
    [codes.get(tokenizer.decode([i]), _OTHER) for i in ids], np.int32
  )
