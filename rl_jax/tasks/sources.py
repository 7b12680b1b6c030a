"""Records of JSONL and CSV files and of tensorflow_datasets."""

from collections.abc import Iterator, Mapping
import csv
import json
import os
import sys
from typing import Any, NoReturn


class BadRowError(ValueError):
  """A row that cannot be used; `kind` is for counting."""

  def __init__(self, where: str, kind: str, problem: str):
    super().__init__(f'{where}: {problem}')
    self.kind = kind

  @classmethod
  def fail(cls, where: str, kind: str, problem: str) -> NoReturn:
    """Raises it, for readers of parts of a row, which do not know its place."""
    raise cls(where, kind, problem)


# (file, number, record or what is wrong): the place is the file and the number.
Record = tuple[str, int, Mapping[str, Any] | BadRowError]


def check_exists(path: str) -> None:
  """Raises FileNotFoundError that says where a relative path was looked for."""
  if not os.path.exists(path):
    where = '' if os.path.isabs(path) else f' (in {os.getcwd()})'
    raise FileNotFoundError(f'no such data file: {path}{where}')


def read_jsonl(path: str, max_row_bytes: int) -> Iterator[Record]:
  """Rows of a file, numbered from 1; blank lines are ignored."""
  check_exists(path)
  if not os.path.isfile(path):
    raise ValueError(f'{path} is not a file of rows')
  with open(path, 'rb') as f:
    number, file = 0, f'{path}:'
    while line := f.readline(max_row_bytes + 1):
      number += 1
      where = f'{file}{number}'
      if len(line) > max_row_bytes:
        while line and not line.endswith(b'\n'):
          line = f.readline(max_row_bytes)
        problem = f'more than {max_row_bytes} bytes'
        yield file, number, BadRowError(where, 'too_long', problem)
      elif line.strip():
        yield file, number, _parse_line(line, where)


def is_list(path: str) -> bool:
  """Returns whether a file begins as a JSON list, which no line of rows
  does.
  """
  if not os.path.isfile(path):
    return False
  with open(path, 'rb') as f:
    while byte := f.read(1):
      if not byte.isspace() and byte not in b'\xef\xbb\xbf':
        return byte == b'['
  return False


def read_list(path: str, max_row_bytes: int) -> Iterator[Record]:
  """Objects of a file that is one JSON list, numbered from 1.

  Raises: ValueError naming the file and the line that cannot be read.
  """
  with open(path, 'rb') as f:
    try:
      found = json.loads(f.read().decode('utf-8-sig'))
    except UnicodeError as error:
      raise ValueError(f'{path}: not valid UTF-8: {error}') from error
    except json.JSONDecodeError as error:
      raise ValueError(f'{path}:{error.lineno}: not valid JSON: {error}') from (
        error
      )
    except RecursionError as error:
      raise ValueError(f'{path}: lists in lists are too deep') from error
  file = f'{path} row '
  for number, record in enumerate(found, 1):
    yield file, number, _checked_row(record, f'{file}{number}', max_row_bytes)


def _checked_row(record, where, max_row_bytes):
  """A row of a list, or what is wrong with it."""
  if not isinstance(record, dict):
    kind = type(record).__name__
    problem = f'a JSON {kind}, not an object: the list is of objects'
    return BadRowError(where, 'wrong_type', problem)
  try:
    size = len(json.dumps(record, ensure_ascii=False).encode())
  except UnicodeError as error:
    return BadRowError(where, 'invalid_utf8', f'not valid UTF-8: {error}')
  if size > max_row_bytes:
    return BadRowError(where, 'too_long', f'more than {max_row_bytes} bytes')
  return record


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
    kind = type(record).__name__
    problem = f'a JSON {kind}, not an object: each line is one object'
    return BadRowError(where, 'wrong_type', problem)
  return record


def read_csv(path: str, max_row_bytes: int) -> Iterator[Record]:
  """Rows below a line of names, with tabs in a .tsv; all values are texts.

  Rows are numbered by the line of the file that they begin in; blank lines are
  ignored. Raises: ValueError if the first line does not name columns.
  """
  check_exists(path)
  if not os.path.isfile(path):
    raise ValueError(f'{path} is not a file of rows')
  csv.field_size_limit(sys.maxsize)  # max_row_bytes is the limit
  # What is not UTF-8 becomes what cannot be encoded again: a bad row.
  how = {'encoding': 'utf-8-sig', 'errors': 'surrogateescape', 'newline': ''}
  with open(path, **how) as f:
    dialect = 'excel-tab' if path.endswith('.tsv') else 'excel'
    rows = csv.reader(f, dialect, strict=True)  # quotes must be closed
    file = f'{path}:'
    try:
      names = next(rows, [])
    except csv.Error as error:
      raise ValueError(f'{path}:1: {error}') from error
    if len(set(names)) != len(names) or not all(map(str.strip, names)):
      raise ValueError(f'{path}:1: {names} are not names of columns')
    while True:
      number = rows.line_num + 1
      try:
        if (values := next(rows, None)) is None:
          return
        if not values:
          continue
        found = _named(values, names, f'{file}{number}', max_row_bytes)
      except csv.Error as error:
        found = BadRowError(f'{file}{number}', 'malformed', str(error))
      yield file, number, found


def _named(values, names, where, max_row_bytes):
  """The record of a row of CSV, or what is wrong with it."""
  if sum(map(len, values)) > max_row_bytes:
    return BadRowError(where, 'too_long', f'more than {max_row_bytes} bytes')
  if len(values) != len(names):
    problem = f'{len(values)} values, but {len(names)} columns {names}'
    return BadRowError(where, 'malformed', problem)
  return dict(zip(names, values, strict=True))


def read_tfds(name: str, split: str) -> Iterator[Record]:
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
      f'environment variable TFDS_DATA_DIR. {type(error).__name__}: '
      + ' '.join(str(error).split())
    ) from error
  for i in range(len(data)):
    yield f'tfds:{name}@{split} row ', i, _plain(data[i])


def _plain(value: Any) -> Any:
  """A record of tfds in Python's types; bytes that are UTF-8 are text."""
  if isinstance(value, Mapping):
    return {key: _plain(one) for key, one in value.items()}
  if isinstance(value, (list, tuple)):
    return [_plain(one) for one in value]
  if isinstance(value, bytes):
    try:
      return value.decode('utf-8')
    except UnicodeDecodeError:
      return value
  if hasattr(value, 'tolist'):  # of numpy
    return _plain(value.tolist())
  return value
