"""The bytes that each token of a `tokenizers` object adds to a decoded text."""

import json
import re
from typing import Any

_BYTE_TOKEN = re.compile(r'<0x([0-9A-Fa-f]{2})>')
_SPACE = '\u2581'  # of SentencePiece


def of_backend(backend: Any, size: int) -> tuple[bytes, ...]:
  """Bytes of the ids below size; special tokens and unknown ids add none.

  The text of a sequence is that of its bytes as UTF-8, but for a space that
  SentencePiece drops at the very beginning.

  Raises: ValueError for decoders that are neither byte-level nor those of
    SentencePiece: their text is not the sum of its tokens.
  """
  read = _reader(backend.decoder)
  added = backend.get_added_tokens_decoder()
  special = {i for i, token in added.items() if token.special}
  names = [
    None if i in special else backend.id_to_token(i) for i in range(size)
  ]
  return tuple(b'' if name is None else read(name) for name in names)


def _reader(decoder: Any):
  """name of a token -> bytes."""
  state = {} if decoder is None else json.loads(decoder.__getstate__())
  parts = state.get('decoders', [state])
  kinds = {part.get('type') for part in parts}
  if 'ByteLevel' in kinds:
    return _byte_level
  if kinds & {'Metaspace', 'ByteFallback'}:
    return _sentence_piece
  raise ValueError(
    'rollout.stop: texts that end a response need a byte-level or a '
    f'SentencePiece tokenizer; this one decodes by {sorted(map(str, kinds))}'
  )


def _byte_level(name: str) -> bytes:
  """Decodes as byte-level decoders do: letters are bytes, else the text."""
  if all(letter in _BYTE_OF for letter in name):
    return bytes(_BYTE_OF[letter] for letter in name)
  return name.encode()


def _sentence_piece(name: str) -> bytes:
  found = _BYTE_TOKEN.fullmatch(name)
  if found:
    return bytes([int(found[1], 16)])
  return name.replace(_SPACE, ' ').encode()


def _letters() -> dict[str, int]:
  """GPT-2's 256 printable letters for bytes, letter -> byte."""
  kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
  spare = iter(range(256, 512))
  return {chr(b if b in kept else next(spare)): b for b in range(256)}


_BYTE_OF = _letters()
