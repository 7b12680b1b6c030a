"""Lines of JSON that say whether they are whole.

A line ends with its own CRC-32, as a changed digit of a reward would train
other weights.
"""

import json
from typing import Any
import zlib

_CRC = b', "line_crc": '


def encode(line: dict[str, Any]) -> bytes:
  """The line with its checksum, and the end of a line."""
  body = json.dumps(line)[:-1].encode()
  return body + _CRC + b'%d}\n' % zlib.crc32(body)


def decode(text: bytes, whole: bool = False) -> dict[str, Any]:
  """The object of a line without its end.

  whole: a line without a checksum, as of earlier versions, is an error.

  Raises: ValueError for a damaged line, or one that holds another value.
  """
  body, mark, crc = text.rpartition(_CRC)
  if (mark or whole) and crc != b'%d}' % zlib.crc32(body):
    raise ValueError('its checksum differs')
  try:
    line = json.loads(body + b'}' if mark else text)
  except RecursionError as error:
    raise ValueError('it is nested too deeply') from error
  if not isinstance(line, dict):
    raise ValueError('it holds another value than an object')
  return line
