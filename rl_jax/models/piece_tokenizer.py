"""Ids for words and other pieces of text, in place of characters."""

from collections.abc import Iterable
import dataclasses
import functools
import re

from rl_jax.models.tokenizer import PlainText


@dataclasses.dataclass(frozen=True)
class PieceTokenizer(PlainText):
  """One id per piece; 0 is padding, 1 ends a sequence.

    PieceTokenizer(('take', ' box', '0', '1')).encode('take box1') == [2, 3, 5]

  From left to right the longest piece that the text continues with is taken.
  With single characters as pieces it is CharTokenizer.

  Raises: ValueError if a piece is empty or occurs twice, or, from `encode`, if
    a text is not made of pieces.
  """

  pieces: tuple[str, ...]
  pad_id = 0
  eos_ids = (1,)

  def __post_init__(self):
    if not isinstance(self.pieces, tuple) or not self.pieces:
      raise ValueError(
        f'PieceTokenizer.pieces = {self.pieces!r:.80} is not a tuple of texts'
      )
    for piece in self.pieces:
      if not isinstance(piece, str) or not piece:
        raise ValueError(f'PieceTokenizer.pieces has {piece!r:.80}, no text')
      if any('\ud800' <= c <= '\udfff' for c in piece):
        raise ValueError(
          f'PieceTokenizer.pieces has {piece!r:.80}, with half a character'
        )
    if len(self._id_of) < len(self.pieces):
      twice = sorted({p for p in self.pieces if self.pieces.count(p) > 1})
      raise ValueError(f'PieceTokenizer.pieces has {twice} more than once')

  @property
  def vocab_size(self) -> int:
    """Padding, end of sequence, and the pieces."""
    return len(self.pieces) + 2

  @property
  def token_bytes(self) -> tuple[bytes, ...]:
    """The bytes of each token; padding and end have none."""
    return (b'', b'', *(piece.encode() for piece in self.pieces))

  @functools.cached_property
  def _id_of(self) -> dict[str, int]:
    return {piece: i + 2 for i, piece in enumerate(self.pieces)}

  @functools.cached_property
  def _next(self) -> re.Pattern[str]:
    """The longest piece that begins at a place."""
    longest = sorted(self.pieces, key=len, reverse=True)
    return re.compile('|'.join(map(re.escape, longest)))

  def encode(self, text: str, control: bool = False) -> list[int]:
    """The longest pieces, from left to right."""
    ids, place = [], 0
    while place < len(text):
      found = self._next.match(text, place)
      if found is None:
        raise ValueError(
          f'no piece of the tokenizer begins with {text[place]!r}, a character '
          f'of {text!r}'
        )
      ids.append(self._id_of[found[0]])
      place = found.end()
    return ids

  def decode(self, ids: Iterable[int]) -> str:
    """Ids without a piece are dropped."""
    pieces, last = self.pieces, self.vocab_size
    return ''.join(pieces[i - 2] for i in map(int, ids) if 2 <= i < last)
