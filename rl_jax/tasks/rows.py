"""Rows of question-answer files; a bad row is an error or is counted."""

from collections.abc import Iterator, Mapping
import dataclasses
import json
import logging
import os
import re
from typing import Any

_FIELD = re.compile(r'\{(\w+)\}')
_LOGGER = logging.getLogger(__name__)


class BadRowError(ValueError):
  """A row that cannot be used; `kind` is for counting."""

  def __init__(self, where: str, kind: str, problem: str):
    super().__init__(f'{where}: {problem}')
    self.kind = kind


@dataclasses.dataclass(frozen=True)
class Row:
  """One usable row."""

  question: str
  answer: str  # as the verifier needs it
  solution: str  # the answer field as released, worked solution included
  where: str  # file and line


@dataclasses.dataclass(frozen=True, eq=False)  # hashed by identity
class Rows:
  """The usable rows of one source, and what was skipped, by kind."""

  rows: tuple[Row, ...]
  skipped: dict[str, int]
  first_bad: str = ''


def collect(
  source: str, split: str, reader: Any, bad_rows: str, max_row_bytes: int
) -> Rows:
  """Reads a whole source.

  `reader(record, where) -> (id or None, Row)` raises BadRowError. `bad_rows` is
  'error' (raise the first) or 'skip' (count by kind and warn).
  """
  good, skipped, first, seen = [], {}, '', {}
  for where, record in read_records(source, split, max_row_bytes):
    try:
      if isinstance(record, BadRowError):
        raise record
      row_id, row = reader(record, where)
      if row_id is not None and row_id in seen:
        raise BadRowError(
          where,
          'duplicate_id',
          f'id {row_id!r} was used before at {seen[row_id]}',
        )
    except BadRowError as error:
      if bad_rows == 'error':
        raise
      first = first or str(error)
      skipped[error.kind] = skipped.get(error.kind, 0) + 1
      continue
    if row_id is not None:
      seen[row_id] = where
    good.append(row)
  if skipped:
    _LOGGER.warning(
      '%s: skipped %d bad rows %s; the first: %s',
      source,
      sum(skipped.values()),
      skipped,
      first,
    )
  if not good:
    reason = f'; the first bad row: {first}' if first else ''
    raise ValueError(f'{source}: no usable row{reason}')
  return Rows(tuple(good), skipped, first)


def read_records(
  source: str, split: str, max_row_bytes: int
) -> Iterator[tuple[str, Mapping[str, Any] | BadRowError]]:
  """Yields (place, record or what is wrong with it)."""
  if source.startswith('tfds:'):
    yield from _read_tfds(source.removeprefix('tfds:'), split)
  else:
    yield from _read_jsonl(source, max_row_bytes)


def fill(template: str, record: Mapping[str, Any], where: str) -> str:
  """Fills in the fields that a template such as '{Body} {Question}' names.

  Raises: BadRowError if a field is missing or is neither text nor a number.
  """

  def value(match):
    name = match[1]
    if name not in record:
      raise BadRowError(
        where,
        'missing_field',
        f'field {name!r} is missing; present: {sorted(map(str, record))}',
      )
    return as_text(record[name], name, where)

  return _FIELD.sub(value, template)


def as_text(value: Any, name: str, where: str) -> str:
  """Text as it is, 43.0 as '43'; anything else is a wrong type."""
  if hasattr(value, 'item') and getattr(value, 'shape', None) == ():
    value = value.item()  # a numpy scalar
  if isinstance(value, bytes):
    try:
      return value.decode('utf-8')
    except UnicodeDecodeError as error:
      raise BadRowError(
        where, 'invalid_utf8', f'field {name!r} is not valid UTF-8'
      ) from error
  if isinstance(value, str):
    return value
  if isinstance(value, bool) or not isinstance(value, (int, float)):
    raise BadRowError(
      where,
      'wrong_type',
      f'field {name!r} is {type(value).__name__}, not text or a number',
    )
  if isinstance(value, float) and value.is_integer():
    return str(int(value))
  return repr(value)


def _read_jsonl(path, max_row_bytes):
  if not os.path.isfile(path):
    raise FileNotFoundError(f'no such data file: {os.path.abspath(path)}')
  with open(path, 'rb') as f:
    number = 0
    while line := f.readline(max_row_bytes + 1):
      number += 1
      where = f'{path}:{number}'
      if len(line) > max_row_bytes:
        while line and not line.endswith(b'\n'):
          line = f.readline(max_row_bytes)
        yield (
          where,
          BadRowError(where, 'too_long', f'more than {max_row_bytes} bytes'),
        )
      elif line.strip():  # blank lines are ignored
        yield where, _parse_line(line, where)


def _parse_line(line, where):
  try:
    record = json.loads(line.decode('utf-8-sig'))
    if b'\\u' in line:  # the escape of half a character is text of no encoding
      json.dumps(record, ensure_ascii=False).encode()
  except UnicodeError as error:
    return BadRowError(where, 'invalid_utf8', f'not valid UTF-8: {error}')
  except (ValueError, RecursionError) as error:
    return BadRowError(where, 'malformed', f'not valid JSON: {error}')
  if not isinstance(record, dict):
    return BadRowError(
      where, 'wrong_type', f'a JSON {type(record).__name__}, not an object'
    )
  return record


def _read_tfds(name, split):
  """ArrayRecord files through tensorflow_datasets; needs no TensorFlow."""
  try:
    import tensorflow_datasets as tfds
  except ImportError as error:
    raise ImportError(
      f'source tfds:{name} needs the packages tensorflow-datasets and '
      'array_record: pip install tensorflow-datasets array_record '
      'importlib_resources'
    ) from error
  name, _, given = name.partition('@')
  split = given or split
  try:
    if os.path.isdir(name):
      builder = tfds.builder_from_directory(name)
    else:
      builder = tfds.builder(name)
    data = builder.as_data_source(split)
  except Exception as error:
    raise ValueError(
      f'tfds:{name}@{split} cannot be read: give the directory of a data set '
      "prepared with file_format='array_record', or its name and the "
      f'environment variable TFDS_DATA_DIR. {type(error).__name__}: {error}'
    ) from error
  for i in range(len(data)):
    yield f'tfds:{name}@{split} row {i}', data[i]
