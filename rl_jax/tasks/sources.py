"""Records of JSONL files and of tensorflow_datasets."""

from collections.abc import Iterator, Mapping
import json
import os
from typing import Any


class BadRowError(ValueError):
  """A row that cannot be used; `kind` is for counting."""

  def __init__(self, where: str, kind: str, problem: str):
    super().__init__(f'{where}: {problem}')
    self.kind = kind


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
    raise ValueError(f'{path} is no file of rows')
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
    yield f'tfds:{name}@{split} row ', i, data[i]
