"""The text of a turn's tokens, on the device and with any tokenizer."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_OTHER = '\0'  # stands for whatever makes a text none of the words


def word_table(
  words: Sequence[str], tokenizer: Any, heads: Sequence[str] = ()
) -> tuple[np.ndarray, list[str]]:
  """(int32 [S, V + 1], texts of the S states): an automaton over tokens.

  Entry [s, v] is the state after token v in state s; the last column is for ids
  that the tokenizer does not know. Texts are the words, what they begin with,
  and for any other text the first of `heads` that it begins with (else nothing)
  followed by a null byte. State 0 is the empty text. Words and heads are ASCII.
  """
  begins = {word[:n].encode() for word in words for n in range(len(word) + 1)}
  ends = [head.encode() for head in (*heads, '')]

  def state(text):
    if text in begins:
      return text
    head = next(head for head in ends if text.startswith(head))
    return head + _OTHER.encode()

  texts, number, rows = [b''], {b'': 0}, []
  for text in texts:  # it grows
    row = []
    for token in (*tokenizer.token_bytes, b''):
      after = state(text + token)
      if after not in number:
        number[after] = len(texts)
        texts.append(after)
      row.append(number[after])
    rows.append(row)
  return np.asarray(rows, np.int32), [text.decode() for text in texts]


def spelled(
  table_SV: np.ndarray, action_BA: jax.Array, length_B: jax.Array
) -> jax.Array:
  """int32 [B]: the state of the first `length` tokens of each row."""
  next_SV, last = jnp.asarray(table_SV), table_SV.shape[1] - 1
  state_B = jnp.zeros_like(length_B)
  for place in range(action_BA.shape[1]):
    id_B = action_BA[:, place]
    id_B = jnp.where((id_B >= 0) & (id_B < last), id_B, last)
    state_B = jnp.where(place < length_B, next_SV[state_B, id_B], state_B)
  return state_B
