"""Rows of question-answer data; a bad row is an error or is counted."""

import array
from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import logging
import math
import os
import re
from typing import Any

from rl_jax.tasks import sources, tables
from rl_jax.tasks.sources import BadRowError

_FIELD = re.compile(r'\{([^{}]+)\}')
# What was meant as a field; other braces are JSON, LaTeX or a set.
_WORD = re.compile(r'\w+')
_WORDS = re.compile(r'[^\W\d]\w*(?:[ ./-]\w+)+')
CSV = ('.csv', '.tsv')
_LOGGER = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Row:
  """One usable row."""

  question: str
  answer: str  # as the verifier needs it
  solution: str  # the answer field as released, worked solution included
  where: str  # file and line


class Rows(Sequence):
  """The usable rows of one source, and what was skipped, by kind.

  A row is made when it is asked for: memory holds the texts once, in UTF-8,
  and 64 bytes a row. Hashed by identity.
  """

  def __init__(self):
    self.skipped: dict[str, int] = {}
    self.first_bad = ''
    self._text = bytearray()
    self._spans = array.array('q')  # of a row: 3 x (begin, end), file, number
    self._files: dict[str, int] = {}

  __hash__ = object.__hash__

  def __len__(self) -> int:
    return len(self._spans) // 8

  def __getitem__(self, index: int) -> Row:
    if not 0 <= index < len(self):
      raise IndexError(index)
    *spans, file, number = self._spans[8 * index : 8 * index + 8]
    places = zip(spans[::2], spans[1::2], strict=True)
    texts = [self._text[begin:end].decode() for begin, end in places]
    return Row(*texts, f'{list(self._files)[file]}{number}')

  def append(self, file: str, number: int, row: Row) -> None:
    """Adds a row; its place is the file's name followed by the number."""
    spans, known = [], {}
    for text in (row.question, row.solution, row.answer):
      if text not in known:
        encoded, begin = text.encode(), len(self._text)
        self._text += encoded
        known[text] = (begin, begin + len(encoded))
      spans.append(known[text])
    question, solution, answer = spans
    self._spans.extend((*question, *answer, *solution))
    self._spans.extend((self._files.setdefault(file, len(self._files)), number))

  def bad(self, error: BadRowError) -> None:
    """Counts a row that is skipped."""
    self.first_bad = self.first_bad or str(error)
    self.skipped[error.kind] = self.skipped.get(error.kind, 0) + 1


class Part(Sequence):
  """Some of the rows, by their indices."""

  def __init__(self, rows: Sequence[Row], indices: Sequence[int]):
    self._rows, self._indices = rows, indices

  def __len__(self) -> int:
    return len(self._indices)

  def __getitem__(self, index: int) -> Row:
    return self._rows[self._indices[index]]


def collect(
  source: str,
  split: str,
  reader: Any,
  bad_rows: str,
  max_row_bytes: int,
  fields: Sequence[str] | None = None,
) -> Rows:
  """Reads a whole source.

  `reader(record, where) -> (id or None, Row)` raises BadRowError. `bad_rows` is
  'error' (raise the first) or 'skip' (count by kind and warn). `fields`: those
  that the reader needs; None: all.
  """
  rows, seen = Rows(), {}
  records = read_records(source, split, max_row_bytes, fields)
  for file, number, record in records:
    where = f'{file}{number}'
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
      try:
        rows.append(file, number, row)
      except UnicodeEncodeError as error:  # half a character
        raise BadRowError(where, 'invalid_utf8', str(error)) from error
    except BadRowError as error:
      if bad_rows == 'error':
        raise
      rows.bad(error)
      continue
    if row_id is not None:
      seen[row_id] = where
  if rows.skipped:
    _LOGGER.warning(
      '%s: skipped %d bad rows %s; the first: %s',
      source,
      sum(rows.skipped.values()),
      rows.skipped,
      rows.first_bad,
    )
  if not rows:
    first = rows.first_bad
    reason = f'; the first bad row: {first}' if first else ''
    raise ValueError(f'{source}: no usable row{reason}')
  return rows


def is_source(text: str) -> bool:
  """Whether a text names data rather than a configuration."""
  endings = ('.jsonl', *CSV, '.parquet', '.arrow')
  path = text.rpartition('@')[0] or text
  return (
    text.startswith('tfds:')
    or text.endswith(endings)
    or tables.is_folder(text)
    or tables.is_folder(path)
  )


def read_records(
  source: str, split: str, max_row_bytes: int, fields: Sequence[str] | None
) -> Iterator[sources.Record]:
  """Yields (file, number of the row, record or what is wrong with it).

  source: 'tfds:NAME', a `.csv`, `.tsv`, `.parquet` or `.arrow` file, a folder
  of `datasets.save_to_disk` or of Parquet files, each but the files with
  '@SPLIT' if it calls the split otherwise; anything else is JSONL. fields:
  those that are read of tables; None: all.
  """
  if source.startswith('tfds:'):
    return sources.read_tfds(source.removeprefix('tfds:'), split)
  path, _, given = source.rpartition('@')
  if not path or os.path.exists(source) or not os.path.isdir(path):
    path, given = source, ''
  if os.path.isdir(path) or path.endswith(('.parquet', '.arrow')):
    return tables.read(path, given or split, max_row_bytes, fields)
  if path.endswith(CSV):
    return sources.read_csv(path, max_row_bytes)
  return sources.read_jsonl(source, max_row_bytes)


def fields_of(*templates: str) -> tuple[str, ...]:
  """Names of the fields in templates such as '{Body} {Question}'."""
  return tuple(name for text in templates for name in _FIELD.findall(text))


def fill(template: str, record: Mapping[str, Any], where: str) -> str:
  """Fills in the fields that a template such as '{Body} {Question}' names.

  Braces are literal around what is no field and does not look like the name of
  one; of all braces of a template, one pair at least must hold a field.

  Raises: BadRowError if a field is missing or is neither text nor a number.
  """
  names = fields_of(template)
  any_known = any(name in record for name in names)

  def value(match):
    name = match[1]
    # As in \boxed{your answer}, braces behind a letter are an argument.
    argument = match.string[: match.start()][-1:].isalpha()
    looks = _WORD.fullmatch(name) or (_WORDS.fullmatch(name) and not argument)
    if name in record or looks or not any_known:
      return field(record, name, where)
    return match[0]

  return _FIELD.sub(value, template)


def field(record: Mapping[str, Any], name: str, where: str) -> str:
  """The text of a field, whatever its name.

  Raises: BadRowError if it is missing or is neither text nor a number.
  """
  if name not in record:
    raise BadRowError(
      where,
      'missing_field',
      f'field {name!r} is missing; present: {sorted(map(str, record))}',
    )
  return as_text(record[name], name, where)


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
  if isinstance(value, float) and not math.isfinite(value):
    # As programs write that a value is missing.
    raise BadRowError(
      where, 'wrong_type', f'field {name!r} is {value}, no finite number'
    )
  if isinstance(value, float) and value.is_integer():
    return str(int(value))
  return repr(value)
