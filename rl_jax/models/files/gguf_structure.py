"""Checks that the counts in the header of a GGUF file fit into the file.

The gguf library trusts every count: it would try to read a list of 2^60
entries. This check reads no more entries than the rest of the file can hold.
The library makes an array of numpy for every entry, 200 bytes for one of a
byte, so there are limits besides.
Layout: github.com/ggml-org/ggml, docs/gguf.md.
"""

import os
import struct
from typing import BinaryIO

_STRING, _ARRAY = 8, 9
# Type of a value -> bytes.
_SIZES = {
  **{0: 1, 1: 1, 7: 1},  # uint8, int8, bool
  **{2: 2, 3: 2, 4: 4, 5: 4, 6: 4},  # int16, int32, float32
  **{10: 8, 11: 8, 12: 8},  # int64, float64
}
_LEAST_PAIR, _LEAST_TENSOR, _LEAST_STRING = 13, 24, 8  # bytes
_MOST_AXES = 4
_MOST_PAIRS, _MOST_TENSORS, _MOST_ENTRIES = 10_000, 100_000, 1 << 22


def check_structure(path: str) -> None:
  """Raises ValueError saying what the file cannot hold; reads no tensor."""
  with open(path, 'rb') as file:
    rest = _Rest(file, os.path.getsize(path))
    magic, version, tensors, pairs = rest.numbers('4sIQQ')
    if magic != b'GGUF' or version not in (2, 3):
      raise ValueError(f'it begins with {magic!r} and version {version}')
    rest.require(pairs, _LEAST_PAIR, 'metadata')
    _limit(pairs, _MOST_PAIRS, 'metadata')
    entries = 0
    for _ in range(pairs):
      rest.skip_string()
      (kind,) = rest.numbers('I')
      entries += _skip_value(rest, kind)
      _limit(entries, _MOST_ENTRIES, 'entries of lists')
    rest.require(tensors, _LEAST_TENSOR, 'tensors')
    _limit(tensors, _MOST_TENSORS, 'tensors')
    for _ in range(tensors):
      rest.skip_string()
      (axes,) = rest.numbers('I')
      if axes > _MOST_AXES:
        raise ValueError(f'it has a tensor of {axes} axes')
      rest.skip(8 * axes + 12)  # sizes, type and place


class _Rest:
  """The part of a file that has not been read."""

  def __init__(self, file: BinaryIO, size: int):
    self._file, self._left = file, size

  def require(self, count: int, size: int, what: str) -> None:
    """Raises ValueError if `count` values of a size do not fit."""
    if count * size > self._left:
      raise ValueError(f'it ends before its {count} {what}')

  def numbers(self, form: str) -> tuple:
    """Little-endian numbers in the form of `struct`."""
    size = struct.calcsize('<' + form)
    self.require(1, size, 'header')
    self._left -= size
    return struct.unpack('<' + form, self._file.read(size))

  def skip(self, size: int) -> None:
    """Skips size bytes."""
    self.require(size, 1, 'bytes of a value')
    self._left -= size
    self._file.seek(size, os.SEEK_CUR)

  def skip_string(self) -> None:
    """Skips a length and as many bytes."""
    (size,) = self.numbers('Q')
    self.skip(size)


def _limit(count: int, most: int, what: str) -> None:
  if count > most:
    raise ValueError(f'it has {count} {what}, more than {most}')


def _skip_value(rest: _Rest, kind: int) -> int:
  """The number of entries, if it is a list."""
  if kind == _STRING:
    rest.skip_string()
  elif kind == _ARRAY:
    kind, count = rest.numbers('IQ')
    if kind == _ARRAY:
      raise ValueError('it has an array of arrays')
    if kind != _STRING:
      rest.skip(count * _size(kind))
      return count
    rest.require(count, _LEAST_STRING, 'strings')
    _limit(count, _MOST_ENTRIES, 'entries of lists')
    for _ in range(count):
      rest.skip_string()
    return count
  else:
    rest.skip(_size(kind))
  return 0


def _size(kind: int) -> int:
  if kind not in _SIZES:
    raise ValueError(f'it has a value of the unknown type {kind}')
  return _SIZES[kind]
