"""Ends of responses: end tokens, and texts however they are tokenized.

A response ends with the token in which its text, without special tokens, has
first one of the texts whole; what follows within that token is not a part of
the decoded text. Where no set of tokens says this, a table of the automaton of
Aho and Corasick (1975) over the bytes of the texts does, one step for each
token.
"""

from collections.abc import Iterable, Sequence
import dataclasses
import functools
from typing import Any

import numpy as np

# More tokens than these are looked up in the table instead of compared.
MOST_IDS = 16
# The table has a row for each byte of the texts, and a column for each token.
MOST_BYTES = 256


@dataclasses.dataclass(frozen=True, eq=False)
class Stop:
  """Made by `make_stop`.

  ids: tokens that end a response and are not part of its text.
  shown: whether a text that ends a response is a part of its text.
  table: int16 [S, V + 1]; entry [s, v] is the state after token v in state s,
    or ~state if a text became whole in it. The last column is for ids that the
    tokenizer does not know. None: ids say everything.
  """

  ids: tuple[int, ...]
  texts: tuple[bytes, ...]
  table: np.ndarray | None
  tokenizer: Any
  shown: bool = False

  def text(self, ids: Iterable[int]) -> str:
    """The text of a response without what has ended it.

    With `shown` a text that ended it is a part of it, an end token is not.
    """
    ids = list(map(int, ids))
    if ids and ids[-1] in self.tokenizer.eos_ids:
      ids = ids[:-1]
    elif (end := self._end(ids)) is not None:
      before = self._before(ids, end)
      return before + self._ending(end) if self.shown else before
    return self.tokenizer.decode(ids)

  def ended_by(self, ids: Sequence[int]) -> str | None:
    """The end of a response: a text, '' an end token, None the limit."""
    ids = list(map(int, ids))
    ended = ids and ids[-1] in (*self.tokenizer.eos_ids, *self.ids)
    if (end := self._end(ids)) is not None:
      return self._ending(end)
    return '' if ended else None

  def _ending(self, end: bytes) -> str:
    """The text that has ended a response, of its bytes from there on."""
    return next(x for x in self.texts if end.startswith(x)).decode()

  def _end(self, ids: Sequence[int]) -> bytes | None:
    """The bytes from the text on that the last token makes whole."""
    if not ids or not self.texts:
      return None
    known = self.tokenizer.token_bytes
    parts = [known[i] if i < len(known) else b'' for i in ids]
    data = b''.join(parts)
    found = self._first(data, len(parts[-1]))
    return None if found is None else data[found:]

  def _first(self, data: bytes, last: int) -> int | None:
    """Returns where the text begins that is first whole in the last bytes."""
    found = []
    for text in self.texts:
      start = data.find(text, max(0, len(data) - last - len(text) + 1))
      if start >= 0:
        found.append((start + len(text), start))
    return min(found)[1] if found else None

  def _before(self, ids, end: bytes) -> str:
    """The decoded text up to the bytes `end`, which begin with a letter."""
    whole, rest = self.tokenizer.decode(ids), end.decode('utf-8', 'replace')
    return whole[: max(0, len(whole) - len(rest))]


@functools.lru_cache(maxsize=32)
def make_stop(
  tokenizer: Any, stop: tuple[str, ...] = (), shown: bool = False
) -> Stop:
  """The end tokens of the tokenizer, and texts that end a response too.

  A text that is one control token ends a response by that token only.

  Raises: ValueError for an empty text, one of control tokens with others, or
    too many bytes.
  """
  ids, texts = list(tokenizer.eos_ids), []
  for text in stop:
    if not text:
      raise ValueError('rollout.stop: a text is empty')
    tokens = tokenizer.encode(text, control=True)
    if tokens == tokenizer.encode(text):
      texts.append(text.encode())
    elif len(tokens) == 1:
      ids += tokens
    else:
      raise ValueError(
        f'rollout.stop: {text!r} holds a control token and more: give the '
        'control token only'
      )
  if not texts:
    return Stop(tuple(dict.fromkeys(ids)), (), None, tokenizer, shown)
  size = sum(map(len, texts))
  if size > MOST_BYTES:
    raise ValueError(
      f'rollout.stop: the texts have {size} bytes in all, more than '
      f'{MOST_BYTES}'
    )
  table = token_table(texts, tokenizer.token_bytes)
  ends_SV = table < 0
  (found,) = np.nonzero(ends_SV[0])
  if len(found) <= MOST_IDS and (ends_SV == ends_SV[0]).all():
    ids += found.tolist()
    table = None
  ids = tuple(dict.fromkeys(ids))
  return Stop(ids, tuple(texts), table, tokenizer, shown)


def token_table(texts: Sequence[bytes], tokens: Sequence[bytes]) -> np.ndarray:
  """int16 [S, V + 1], see Stop: the steps of all bytes of each token."""
  next_S256 = _automaton(texts)
  S, V = len(next_S256), len(tokens)
  state_SV = np.tile(np.arange(S, dtype=np.int16)[:, None], V + 1)
  whole_SV = np.zeros((S, V + 1), bool)
  # Longest first: those that have a byte at a place are the first ones.
  lengths = np.array([len(token) for token in tokens])
  order = np.argsort(-lengths, kind='stable')
  for place in range(lengths.max()):
    going = order[: (lengths > place).sum()]
    byte = np.array([tokens[v][place] for v in going])
    after = next_S256[state_SV[:, going], byte]
    whole_SV[:, going] |= after < 0
    state_SV[:, going] = np.where(after < 0, ~after, after)
  return np.where(whole_SV, ~state_SV, state_SV)


def _automaton(texts: Sequence[bytes]) -> np.ndarray:
  """int16 [S, 256]: the state after a byte, or ~state if a text is whole.

  A state is the longest end of what was read that begins a text.
  """
  begins = sorted({t[:n] for t in texts for n in range(len(t) + 1)}, key=len)
  number = {begin: i for i, begin in enumerate(begins)}
  next_S256 = np.zeros((len(begins), 256), np.int16)
  for i, begin in enumerate(begins):
    for byte in range(256):
      read = begin + bytes([byte])
      state = next(
        number[read[n:]] for n in range(len(read) + 1) if read[n:] in number
      )
      next_S256[i, byte] = ~state if read.endswith(tuple(texts)) else state
  return next_S256
