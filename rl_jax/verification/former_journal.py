"""Reads the journal of earlier versions, for runs that have one.

It has one line for all calls of a round, in the file FILE; the first versions
wrote no checksums. Later answers are in `verification.journal`.
"""

import os
from typing import Any

from absl import logging
from etils import epath

from rl_jax.verification import journal_lines

FILE = 'verifications.jsonl'
_KEYS = ['call', 'crc', 'outcomes']


def read(path: str | os.PathLike[str]) -> dict[int, dict[str, Any]]:
  """The lines of a file by call; none that follows a damaged one is used."""
  found: dict[int, dict[str, Any]] = {}
  place = epath.Path(path)
  if not place.exists():
    return found
  lines = place.read_bytes().split(b'\n')[:-1]  # the last one may be torn
  for number, text in enumerate(lines, start=1):
    try:
      line = _decode(text)
    except ValueError as error:
      logging.warning(
        '%s:%d is damaged (%s): this call and those after it are made again, '
        'where the run repeats them',
        place,
        number,
        error,
      )
      break
    found[line['call']] = line
  return found


def _decode(text: bytes) -> dict[str, Any]:
  """A line; ValueError for a damaged one, or one of another form."""
  line = journal_lines.decode(text)
  if list(line) != _KEYS:
    raise ValueError(f'it has not the keys {", ".join(_KEYS)}')
  call, crc, outcomes = line.values()
  if not (type(call) is int and call >= 0 and type(crc) is int):
    raise ValueError('it has no number of a call')
  if not (isinstance(outcomes, list) and all(map(_is_outcome, outcomes))):
    raise ValueError('it holds no outcomes of a call')
  return line


def _is_outcome(value):
  """Returns whether it is [components or reply, kind, detail]."""
  if not isinstance(value, list) or len(value) != 3:
    return False
  result, kind, detail = value
  if not isinstance(result, dict) and (result is not None or kind == 'ok'):
    return False
  return isinstance(kind, str) and isinstance(detail, str)
