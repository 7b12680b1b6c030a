"""Checks whether the data and model files of a run are those of its start.

`fingerprints.json` in the work directory has of every file size, time of
modification, SHA-256 and, for rows of text, checksums of at most 1,024 blocks
of lines, by which a change is located. A file of up to 64 MB is read at every
start. A larger one is read again only if its size or time differ from what is
recorded, so an edit that keeps both is not noticed.
"""

import array
from collections.abc import Iterator
import dataclasses
import glob
import hashlib
import itertools
import json
import os
from typing import Any
import zlib

from etils import epath

from rl_jax import checks
from rl_jax.config import ExperimentConfig
from rl_jax.pieces.policies import Loaded
from rl_jax.records.checkpoints import files as checkpoint_files

FILE = 'fingerprints.json'
READ_ALWAYS = 64 << 20  # bytes
_BLOCKS = 1024
_ROWS = ('.jsonl', '.json', '.csv', '.txt')
_MODEL = ('.json', '.safetensors', '.gguf', '.jinja', '.model', '.txt')


def of(
  config: ExperimentConfig, recorded: dict[str, Any] | None = None
) -> dict[str, Any]:
  """{field, or field/file of a folder: fingerprint} of a configuration.

  The fields are `model.path`, `path` of reward models and of policies that the
  method reads, and every text of the task that names a file.
  recorded: fingerprints that save reading large files.
  """
  recorded, found = recorded or {}, {}
  for key, path in _files(config):
    known = recorded.get(key, {})
    stat = os.stat(path)
    size, time = stat.st_size, stat.st_mtime_ns
    if size <= READ_ALWAYS or (size, time) != (
      known.get('size'),
      known.get('mtime_ns'),
    ):
      known = {'size': size, 'mtime_ns': time, **_content(path)}
    found[key] = {**known, 'path': path}
  return found


def changes(recorded: dict[str, Any], now: dict[str, Any]) -> list[str]:
  """Lines 'field: sha256 old -> sha256 new (path)' of what differs.

  Where in a file of rows is said as well. A field all of whose files are gone,
  and one that is new, make no difference: who reads it knows better.
  """
  lines = []
  for key in sorted(recorded.keys() | now.keys()):
    old, new = recorded.get(key), now.get(key)
    if old and new:
      if old['sha256'] != new['sha256']:
        place = _first_change(new['path'], old)
        lines.append(
          f'{key}: sha256 {old["sha256"][:12]} -> sha256 {new["sha256"][:12]} '
          f'({new["path"]}{place})'
        )
    elif new and _field(key) in map(_field, recorded):
      lines.append(f'{key}: no file -> sha256 {new["sha256"][:12]}')
    elif old and _field(key) in map(_field, now):
      lines.append(f'{key}: sha256 {old["sha256"][:12]} -> no file')
  return lines


def same(field: str, recorded: dict[str, Any], now: dict[str, Any]) -> bool:
  """Returns whether a field names files, and all have the recorded content."""
  old, new = (
    {k: x['sha256'] for k, x in files.items() if _below(k, field)}
    for files in (recorded, now)
  )
  return bool(old) and old == new


def read(workdir: str) -> dict[str, Any]:
  """Returns what `write` recorded; {} for a run of an earlier version.

  Raises ValueError naming a damaged file.
  """
  path = os.path.join(workdir, FILE)
  if not os.path.exists(path):
    return {}
  try:
    with open(path, encoding='utf-8') as file:
      return dict(json.load(file))
  except (TypeError, ValueError) as error:
    raise ValueError(
      f'{path} is damaged ({error}). Remove it if data and model are those of '
      'the run.'
    ) from error


def text(known: dict[str, Any]) -> str:
  """The content of fingerprints.json."""
  return json.dumps(known, indent=1, sort_keys=True) + '\n'


def _field(key):
  return key.partition('/')[0]


def _below(key, field):
  return key == field or key.startswith((f'{field}/', f'{field}.'))


def _files(config) -> Iterator[tuple[str, str]]:
  path = config.model.path
  if path is not None:
    yield from _model_files(path, 'model.path')
  if config.model.value_from is not None:
    yield from _model_files(config.model.value_from, 'model.value_from')
  for i, source in enumerate(config.reward_models):
    yield from _model_files(source.path, f'reward_models.{i}.path')
  for i, judge in enumerate(config.judges):
    for field, one in (('', judge), ('.revision', judge.revision)):
      if one is not None and one.path:  # '' is the policy
        yield from _model_files(one.path, f'judges.{i}{field}.path')
  for i, partner in enumerate(config.partners):
    yield from _model_files(partner.path, f'partners.{i}.path')
  for name, rule in config.method.policies().items():
    if isinstance(rule, Loaded):
      yield from _model_files(rule.path, f'method.policies.{name}')
  yield from _task_files(config.task, 'task')


def _model_files(path, field):
  """The files that identify a model: a newest checkpoint, or a folder's."""
  if os.path.isfile(path):
    yield field, path
    return
  steps = epath.Path(path) / 'checkpoints'
  if found := checkpoint_files.committed_steps(steps):
    commit = checkpoint_files.step_path(steps, found[-1])
    # It has the checksums of all other files.
    yield f'{field}/newest', os.fspath(commit / checkpoint_files.COMMIT)
  elif os.path.isdir(path):
    for name in sorted(os.listdir(path)):
      if name.endswith(_MODEL) and name != 'README.txt':
        yield f'{field}/{name}', os.path.join(path, name)


def _task_files(value, field):
  """(field, file) of every text below a task that names one."""
  if dataclasses.is_dataclass(value):
    for name, below in checks.values(value).items():
      yield from _task_files(below, f'{field}.{name}')
  elif isinstance(value, dict):
    for name, part in value.items():
      yield from _task_files(part, f'{field}.{name}')
  elif isinstance(value, (tuple, list)):
    for i, part in enumerate(value):
      yield from _task_files(part, f'{field}.{i}')
  elif isinstance(value, str):
    yield from _named_files(value, field)


def _named_files(text, field):
  """Files of 'rows.jsonl', 'data/*.parquet', 'tfds:FOLDER@train' and the like.

  A folder counts with all its files, where the text says that it is data: in
  `sources` or `path`, or after 'NAME:'.
  """
  if len(text) > 1000 or '\n' in text:
    return
  prefix, colon, rest = text.partition(':')
  place = (rest if colon and prefix.isidentifier() else text).partition('@')[0]
  is_data = bool(colon and prefix.isidentifier())
  is_data = is_data or '.sources' in field or field.endswith('.path')
  if is_data and not os.path.exists(place):
    prepared = os.path.join(os.environ.get('TFDS_DATA_DIR', ''), place)
    place = prepared if prefix == 'tfds' else place
  if os.path.isfile(place) and ('.' in place or os.sep in place):
    yield field, place
  elif is_data and '*' in place:
    for path in sorted(glob.glob(place, recursive=True)):
      if os.path.isfile(path):
        yield f'{field}/{os.path.basename(path)}', path
  elif is_data and place and os.path.isdir(place):
    for folder, folders, names in os.walk(place):
      folders[:] = sorted(x for x in folders if not x.startswith('.'))
      for name in sorted(x for x in names if not x.startswith('.')):
        path = os.path.join(folder, name)
        yield f'{field}/{os.path.relpath(path, place)}', path


def _content(path):
  """SHA-256, and for rows the checksums of blocks of lines."""
  if not path.endswith(_ROWS):
    with open(path, 'rb') as file:
      return {'sha256': hashlib.file_digest(file, 'sha256').hexdigest()}
  whole, lines = hashlib.sha256(), array.array('I')
  with open(path, 'rb') as file:
    for line in file:
      whole.update(line)
      lines.append(zlib.crc32(line))
  size = max(1, -(-len(lines) // _BLOCKS))
  blocks = [_block(lines[i : i + size]) for i in range(0, len(lines), size)]
  return {
    'sha256': whole.hexdigest(),
    'lines_per_block': size,
    'blocks': ' '.join(blocks),
  }


def _block(lines):
  return f'{zlib.crc32(lines.tobytes()):08x}'


def _first_change(path, recorded):
  """', first in lines 17 to 18' of a file of rows, else ''."""
  if 'blocks' not in recorded:
    return ''
  size, blocks = recorded['lines_per_block'], recorded['blocks'].split()
  number = 0
  with open(path, 'rb') as file:
    while number < len(blocks):
      lines = map(zlib.crc32, itertools.islice(file, size))
      if _block(array.array('I', lines)) != blocks[number]:
        break
      number += 1
  first = number * size + 1
  last = '' if size == 1 else f' to {first + size - 1}'
  return f', first in line{"s" * bool(last)} {first}{last}'
