"""Rows of Parquet and Arrow files, and of folders of the `datasets` package.

A folder is one that `save_to_disk` wrote (Arrow files that `state.json` lists,
or `dataset_dict.json` with a folder for each split), or it holds Parquet files
whose names, or whose folders, start with their split, as on the Hugging Face
hub: `train-00000-of-00002.parquet`, `data/test-00000-of-00001.parquet`,
`default/train/0000.parquet`.
"""

from collections.abc import Iterator, Sequence
import glob
import json
import os
import re
from typing import Any

from rl_jax.tasks.messages import OF_CONVERSATIONS
from rl_jax.tasks.sources import BadRowError, Record, check_exists

_BATCH = 256  # rows that are decoded at a time


def read(
  path: str,
  split: str,
  max_row_bytes: int,
  fields: Sequence[str] | None,
  more: Sequence[str] = (),
) -> Iterator[Record]:
  """Yields as `rows.read_records`; rows are numbered from 1 in each file.

  fields: columns that are needed, None for all; 'a.b' is in the column a.
  more: columns that are read if they are there, '*' for all; max_row_bytes
  does not count them.

  Raises: ValueError naming a file that cannot be read, or the known splits.
  """
  arrow = _pyarrow(path)
  check_exists(path)
  for file in files(path, split):
    number = 0
    try:
      for batch, counted in _batches(file, fields, more):
        for row in range(batch.num_rows):
          number += 1
          where = f'{file}:{number}'
          yield (
            f'{file}:',
            number,
            _record(batch, row, where, counted, max_row_bytes),
          )
    except (arrow.ArrowException, OSError) as error:
      after = f' after row {number}' * (number > 0)
      raise ValueError(f'{file} cannot be read{after}: {error}') from error


def is_folder(path: str) -> bool:
  """Returns whether a path is a folder that `read` knows."""
  return (
    any(
      os.path.exists(os.path.join(path, name))
      for name in ('state.json', 'dataset_dict.json')
    )
    or _parquet_files(path) != []
  )


def files(path: str, split: str) -> list[str]:
  """The files that hold a split, in order.

  Raises: ValueError naming the splits that a folder has.
  """
  if not os.path.isdir(path):
    return [path]
  if os.path.exists(os.path.join(path, 'dataset_dict.json')):
    splits = _json(os.path.join(path, 'dataset_dict.json')).get('splits')
    if not isinstance(splits, list) or split not in splits:
      raise ValueError(f'{path} has no split {split!r}, but {splits}')
    path = os.path.join(path, split)
  if os.path.exists(os.path.join(path, 'state.json')):
    return _saved_files(path)
  by_split: dict[str, list[str]] = {}
  for name in _parquet_files(path):
    by_split.setdefault(_split_of(name, path), []).append(name)
  if split not in by_split:
    known = sorted(by_split) or 'no Parquet file and no state.json'
    raise ValueError(
      f'{path} has no split {split!r}, but {known}; PATH@SPLIT names another'
    )
  return by_split[split]


def _parquet_files(path):
  pattern = os.path.join(glob.escape(path), '**', '*.parquet')
  return sorted(glob.glob(pattern, recursive=True))


def _saved_files(path):
  """Returns what save_to_disk wrote."""
  state = _json(os.path.join(path, 'state.json'))
  entries = state.get('_data_files')
  names = [e.get('filename') for e in entries or () if isinstance(e, dict)]
  known = [name for name in names if isinstance(name, str)]
  if not known or len(known) < len(names):
    raise ValueError(f'{path}/state.json lists no data files')
  if state.get('_indices_data_files'):
    raise ValueError(
      f'{path} holds a selection of rows by index, of an old version of '
      '`datasets`: save it again with a newer one'
    )
  return [os.path.join(path, os.path.basename(name)) for name in known]


def _split_of(file, path):
  """'train' of data/train-00000-of-00002.parquet and train/0000.parquet."""
  *folders, name = os.path.relpath(file, path).split(os.sep)
  word = re.match(r'[A-Za-z_]\w*', name)
  if word:
    return word[0].removesuffix('_')
  return folders[-1].removeprefix('partial-') if folders else ''


def _json(path) -> dict[str, Any]:
  try:
    with open(path, encoding='utf-8') as f:
      found = json.load(f)
    if isinstance(found, dict):
      return found
    problem = f'a JSON {type(found).__name__}, not an object'
  except (OSError, ValueError, RecursionError) as error:
    problem = str(error)
  raise ValueError(f'{path} cannot be read: {problem}')


def _batches(file, fields, more):
  """(record batch, names of the columns that count as bytes of a row)."""
  import pyarrow as pa

  if file.endswith('.parquet'):
    import pyarrow.parquet as pq

    with pq.ParquetFile(file, memory_map=True) as table:
      counted, names = _chosen(table.schema_arrow, fields, more)
      for batch in table.iter_batches(batch_size=_BATCH, columns=names):
        yield batch, counted
    return
  with pa.memory_map(file) as source:
    try:
      batches = pa.ipc.open_stream(source)  # what `datasets` writes
    except pa.ArrowInvalid:
      source.seek(0)
      table = pa.ipc.open_file(source)
      batches = map(table.get_batch, range(table.num_record_batches))
    for batch in batches:
      batch.validate()
      counted, names = _chosen(batch.schema, fields, more)
      yield batch.select(names), counted


def _chosen(schema, fields, more):
  """(needed columns, all that are read).

  These are all where a needed one is missing, as the error lists them; where a
  needed one holds lists, which may be conversations, what belongs to those is
  read, too.
  """
  import pyarrow as pa

  names = schema.names
  if fields is None:
    return names, names
  needed = {f if f in names else re.split(r'[.\[]', f)[0] for f in fields}
  if not needed <= set(names):
    return names, names
  counted = [name for name in names if name in needed]
  if '*' in more:
    return counted, names
  if any(pa.types.is_nested(schema.field(name).type) for name in counted):
    more = (*more, *OF_CONVERSATIONS)
  return counted, [name for name in names if name in needed or name in more]


def _record(batch, row, where, counted, max_row_bytes):
  """One row as a dictionary, or what is wrong with it."""
  record, size = {}, 0
  for name, column in zip(batch.schema.names, batch.columns, strict=True):
    try:
      value = record[name] = column[row].as_py()
    except UnicodeDecodeError:
      problem = f'field {name!r} is not valid UTF-8'
      return BadRowError(where, 'invalid_utf8', problem)
    except (ValueError, OverflowError) as error:  # a date beyond Python's
      return BadRowError(where, 'wrong_type', f'field {name!r}: {error}')
    if name in counted and isinstance(value, (str, bytes)):
      size += len(value)
  if size > max_row_bytes:
    return BadRowError(where, 'too_long', f'more than {max_row_bytes} bytes')
  return record


def _pyarrow(path):
  try:
    import pyarrow
  except ImportError as error:
    raise ImportError(
      f'{path} needs the package pyarrow: pip install "rl_jax[data]"'
    ) from error
  return pyarrow
