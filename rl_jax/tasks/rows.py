"""Rows of question-answer data; a bad row is an error or is counted."""

import array
from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import functools
import logging
import math
import os
import pickle
import re
from typing import Any

from rl_jax import checks
from rl_jax.tasks import base, messages, sources, tables
from rl_jax.tasks.sources import BadRowError

_FIELD = re.compile(r'\{([^{}]+)\}')
# What was meant as a field; other braces are JSON, LaTeX or a set.
_WORD = re.compile(r'\w+')
_WORDS = re.compile(r'[^\W\d]\w*(?:[ ./-]\w+|\[\d+\])+')
_INDEX = re.compile(r'\[(\d+)\]')
CSV = ('.csv', '.tsv')
ALL_COLUMNS = ('*',)
_LOGGER = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Row:
  """One usable row."""

  question: str  # of a conversation: the text of its last turn
  answer: str  # as the verifier needs it
  solution: str  # the answer field as released, worked solution included
  where: str  # file and line
  turns: tuple[dict[str, Any], ...] = ()  # of a prompt that is a conversation
  # What the row says to the chat template that renders `turns`.
  arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  answers: tuple[str, ...] = ()  # all right answers, if there are several
  # Fields of the record that rewards read.
  columns: Mapping[str, Any] = dataclasses.field(default_factory=dict)


_NO_TEXTS = ('turns', 'arguments', 'answers', 'columns')


class Rows(Sequence):
  """The usable rows of one source, and what was skipped, by kind.

  A row is made when it is asked for: memory holds the texts once, in UTF-8,
  80 bytes a row, and what is not text pickled. Hashed by identity.
  """

  def __init__(self):
    self.skipped: dict[str, int] = {}
    self.first_bad = ''
    self._text = bytearray()
    self._spans = array.array('q')  # of a row: 4 x (begin, end), file, number
    self._files: dict[str, int] = {}

  __hash__ = object.__hash__

  def __len__(self) -> int:
    return len(self._spans) // 10

  # Nothing takes slices of rows.
  def __getitem__(self, index: int) -> Row:  # pyrefly: ignore[bad-override]
    if not 0 <= index < len(self):
      raise IndexError(index)
    *spans, file, number = self._spans[10 * index : 10 * index + 10]
    places = zip(spans[::2], spans[1::2], strict=True)
    *texts, more = (self._text[begin:end] for begin, end in places)
    question, answer, solution = (text.decode() for text in texts)
    return Row(
      question,
      answer,
      solution,
      f'{list(self._files)[file]}{number}',
      **(pickle.loads(more) if more else {}),
    )

  def append(self, file: str, number: int, row: Row) -> None:
    """Adds a row; its place is the file's name followed by the number."""
    known = {}
    for text in (row.question, row.solution, row.answer):
      if text not in known:
        known[text] = self._stored(text.encode())
    more = checks.values(row, _NO_TEXTS)
    more = {name: value for name, value in more.items() if value}
    for text in (row.question, row.answer, row.solution):
      self._spans.extend(known[text])
    self._spans.extend(self._stored(pickle.dumps(more) if more else b''))
    self._spans.extend((self._files.setdefault(file, len(self._files)), number))

  def _stored(self, encoded: bytes) -> tuple[int, int]:
    """(begin, end) of what is appended."""
    begin = len(self._text)
    self._text += encoded
    return begin, len(self._text)

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

  # Nothing takes slices of rows.
  def __getitem__(self, index: int) -> Row:  # pyrefly: ignore[bad-override]
    return self._rows[self._indices[index]]


def collect(
  source: str,
  split: str,
  reader: Any,
  bad_rows: str,
  max_row_bytes: int,
  fields: Sequence[str] | None = None,
  columns: Sequence[str] = (),
) -> Rows:
  """Reads a whole source.

  `reader(record, where) -> (id or None, Row)` raises BadRowError. `bad_rows` is
  'error' (raise the first) or 'skip' (count by kind and warn). `fields`: those
  that the reader needs; None: all. `columns`: fields of the record that a row
  keeps for rewards, ALL_COLUMNS for all.
  """
  rows, seen = Rows(), {}
  records = read_records(source, split, max_row_bytes, fields, columns)
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
        if columns:
          kept = _kept(record, columns, where)
          row = dataclasses.replace(row, columns=kept)
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


def _kept(record, columns, where):
  """The fields of a record that rewards read."""
  if tuple(columns) == ALL_COLUMNS:
    return dict(record)
  missing = [name for name in columns if name not in record]
  if missing:
    raise _missing(missing[0], record, record, '', where)
  return {name: record[name] for name in columns}


def check_sources(kind: str, sources: Any) -> None:
  """Raises ValueError unless sources of a task are texts by names of splits."""
  if not isinstance(sources, Mapping):
    raise ValueError(
      f"{kind}.sources = {sources!r} is not {{'train': SOURCE, ...}}"
    )
  if not sources:
    raise ValueError(f'{kind}.sources is empty')
  for split, source in sources.items():
    base.check_split(split)
    if not isinstance(source, str) or not source:
      raise ValueError(
        f'{kind}.sources[{split!r}] = {source!r} is not the text of '
        'one file, one folder (several Parquet files are read together) or '
        'tfds:NAME'
      )


def is_source(text: str) -> bool:
  """Returns whether a text names data rather than a configuration."""
  endings = ('.jsonl', '.json', *CSV, '.parquet', '.arrow')
  path = text.rpartition('@')[0] or text
  return (
    text.startswith('tfds:')
    or text.endswith(endings)
    or tables.is_folder(text)
    or tables.is_folder(path)
  )


def read_records(
  source: str,
  split: str,
  max_row_bytes: int,
  fields: Sequence[str] | None,
  columns: Sequence[str] = (),
) -> Iterator[sources.Record]:
  """Yields (file, number of the row, record or what is wrong with it).

  source: 'tfds:NAME', a `.csv`, `.tsv`, `.parquet` or `.arrow` file, a folder
  of `datasets.save_to_disk` or of Parquet files, each but the files with
  '@SPLIT' if it calls the split otherwise; anything else is JSONL. fields:
  those that are read of tables, None for all; columns: further ones, if they
  are there, ALL_COLUMNS for all. JSON may also be one list of objects.
  """
  if source.startswith('tfds:'):
    return sources.read_tfds(source.removeprefix('tfds:'), split)
  path, _, given = source.rpartition('@')
  if not path or os.path.exists(source) or not os.path.isdir(path):
    path, given = source, ''
  if os.path.isdir(path) or path.endswith(('.parquet', '.arrow')):
    return tables.read(path, given or split, max_row_bytes, fields, columns)
  if path.endswith(CSV):
    return sources.read_csv(path, max_row_bytes)
  if sources.is_list(source):
    return sources.read_list(source, max_row_bytes)
  return sources.read_jsonl(source, max_row_bytes)


def fields_of(*templates: str) -> tuple[str, ...]:
  """Names of the fields in templates such as '{Body} {Question}'."""
  return tuple(name for text in templates for name in _FIELD.findall(text))


def only_field(template: str) -> str | None:
  """'prompt' of '{prompt}'; None if a template is more than one field."""
  match = _FIELD.fullmatch(template.strip())
  return match[1] if match else None


def fill(template: str, record: Mapping[str, Any], where: str) -> str:
  """Fills in the fields that a template such as '{Body} {Question}' names.

  Braces are literal around what is not a field and does not look like the name
  of one; of all braces of a template, one pair at least must hold a field.

  Raises: BadRowError if a field is missing or is neither text nor a number.
  """
  names = fields_of(template)
  any_known = any(_has(record, name) for name in names)

  def value(match):
    name = match[1]
    # As in \boxed{your answer}, braces after a letter are an argument.
    argument = match.string[: match.start()][-1:].isalpha()
    looks = _WORD.fullmatch(name) or (_WORDS.fullmatch(name) and not argument)
    if _has(record, name) or looks or not any_known:
      return field(record, name, where)
    return match[0]

  return _FIELD.sub(value, template)


def field(record: Mapping[str, Any], name: str, where: str) -> str:
  """The text of a field, see `lookup`.

  Raises: BadRowError if it is missing or is neither text nor a number.
  """
  return as_text(lookup(record, name, where), name, where)


def lookup(record: Mapping[str, Any], name: str, where: str) -> Any:
  """The value of a field, whatever its name.

  'a.b' is the field b of the object in the field a, and 'a.0' or 'a[0]' the
  first value of the list there, unless a field has the whole name.

  Raises: BadRowError if it is missing.
  """
  if name in record:
    return record[name]
  value: Any = record
  path = ''
  for part in _INDEX.sub(r'.\1', name).split('.'):
    if isinstance(value, Mapping) and part in value:
      value = value[part]
    elif _is_index(value, part):
      value = value[int(part)]
    else:
      raise _missing(name, record, value, path, where)
    path = f'{path}.{part}' if path else part
  return value


def conversation(
  record: Mapping[str, Any], name: str, where: str
) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
  """(turns, variables of the chat template) of a prompt in a field.

  Both are empty where the field holds no list.

  Raises: BadRowError if the field is missing or holds another list.
  """
  value = lookup(record, name, where)
  if not isinstance(value, (list, tuple)):
    return (), {}
  fail = functools.partial(BadRowError.fail, where)
  messages.check_no_images(record, fail)
  turns = messages.read_prompt(value, name, fail)
  return turns, messages.template_arguments(record, fail)


def _has(record, name):
  try:
    lookup(record, name, '')
  except BadRowError:
    return False
  return True


def _is_index(value, part):
  is_list = isinstance(value, (list, tuple))
  return is_list and part.isdecimal() and int(part) < len(value)


def _missing(name, record, value, path, where):
  """The error for a field that is not there; value: what is at `path`."""
  present = f'present: {sorted(map(str, record))}'
  if path:
    kind = type(value).__name__
    if isinstance(value, Mapping):
      present = f'{path!r} has {sorted(map(str, value))}'
    elif isinstance(value, (list, tuple)):
      present = f'{path!r} is a list of {len(value)}'
    else:
      present = f'{path!r} is {kind}, which has no fields'
  return BadRowError(
    where, 'missing_field', f'field {name!r} is missing; {present}'
  )


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
    kind, hint = type(value).__name__, ''
    if isinstance(value, Mapping) and value:
      hint = (
        f'; its fields have names as {name + "." + str(next(iter(value)))!r}'
      )
    raise BadRowError(
      where,
      'wrong_type',
      f'field {name!r} is {kind}, not text or a number{hint}',
    )
  if isinstance(value, float) and not math.isfinite(value):
    # As programs write that a value is missing.
    raise BadRowError(
      where, 'wrong_type', f'field {name!r} is {value}, no finite number'
    )
  if isinstance(value, float) and value % 1 == 0:
    return str(int(value))
  return repr(value)
