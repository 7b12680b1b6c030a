"""Atomic replacement of directories; JSON and tensor files."""

from collections.abc import Generator, Iterable, Mapping
import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from typing import Any

from absl import logging
import jax.numpy as jnp
import ml_dtypes  # noqa: F401  registers bfloat16 with numpy
import numpy as np

from rl_jax.optional import require

# Lists the files that this project wrote to a directory, and may replace.
MARKER = '.rl_jax.json'
MOST_TEXT_BYTES = 1 << 28
# In names of directories that are being written, and of those they replace.
_PARTIAL, _OLD = '.partial-', '.old'
SHARD_BYTES = 1 << 29  # of a file of weights; what is written is in memory
FLOAT_TYPES = ('F64', 'F32', 'F16', 'BF16')


@contextlib.contextmanager
def replace_directory(directory: str) -> Generator[str]:
  """Gives a temporary directory that takes the place of `directory` at exit.

  Of an old directory that was written by this function, only the files that it
  wrote are replaced; everything else (.git, README.md, data) is kept. An
  exception leaves the old directory as it was. What a process has left that was
  killed in here is removed by the next one that replaces the same directory.

  Raises: ValueError naming files that would be lost.
  """
  directory = os.path.realpath(directory)
  parent, name = os.path.split(directory)
  os.makedirs(parent, exist_ok=True)
  _remove_abandoned(directory)
  kept = _others(directory)
  temporary, held = _make_temporary(parent, name)
  try:
    yield temporary
    written = sorted(os.listdir(temporary))
    lost = sorted({*written, MARKER} & set(kept))
    if lost:
      raise ValueError(
        f'{directory}: {", ".join(lost)} would be replaced, but rl_jax did not '
        'write it. Remove it, or choose another directory'
      )
    write_json(temporary, MARKER, {'written_by': 'rl_jax', 'files': written})
    for file in os.listdir(temporary):
      path = os.path.join(temporary, file)
      _sync(path)
      os.chmod(path, 0o644)  # temporary files are created private
    os.chmod(temporary, 0o755)
    for file in kept:
      _link(os.path.join(directory, file), os.path.join(temporary, file))
    old = temporary + _OLD
    # Renaming cannot replace a directory that has files.
    if os.path.exists(directory):
      os.rename(directory, old)
    os.rename(temporary, directory)
    shutil.rmtree(old, ignore_errors=True)
  finally:
    shutil.rmtree(temporary, ignore_errors=True)
    os.close(held)


def _make_temporary(parent: str, name: str) -> tuple[str, int]:
  """A new directory and a descriptor that holds its lock."""
  while True:
    path = tempfile.mkdtemp(prefix=f'.{name}{_PARTIAL}', dir=parent)
    try:
      held = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # another process took it for abandoned
      continue
    with contextlib.suppress(OSError):  # a file system without locks
      fcntl.flock(held, fcntl.LOCK_EX)
    if os.path.exists(path):
      return path, held
    os.close(held)


def _remove_abandoned(directory: str) -> None:
  """Undoes what processes have left that were killed in replace_directory.

  They held a lock, which the kernel has freed. Where there are no locks nothing
  is removed: the names say what it is.
  """
  parent, name = os.path.split(directory)
  try:
    names = sorted(os.listdir(parent))
  except OSError:  # it can be written, and not be read
    return
  for found in names:
    if not found.startswith(f'.{name}{_PARTIAL}'):
      continue
    path = os.path.join(parent, found)
    written = path.removesuffix(_OLD)
    held = _lock_of(written)
    if held is None and os.path.exists(written):
      continue  # a process writes it
    if found.endswith(_OLD) and not os.path.exists(directory):
      os.rename(path, directory)  # it was killed between two renames
    else:
      logging.warning('%s, of an export that was killed, is removed', path)
      shutil.rmtree(path, ignore_errors=True)
    if held is not None:
      os.close(held)


def _lock_of(path: str) -> int | None:
  """A descriptor that holds the lock of a directory; None: others hold it."""
  try:
    held = os.open(path, os.O_RDONLY)
  except OSError:
    return None
  try:
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except OSError:
    os.close(held)
    return None
  return held


def check_replaceable(directory: str) -> None:
  """Raises ValueError if replace_directory would refuse what is there now."""
  _others(os.path.realpath(directory))


def _others(directory: str) -> list[str]:
  """Returns what a directory holds that replace_directory did not write.

  Raises: ValueError if it has files, but none that replace_directory wrote.
  """
  if not os.path.exists(directory):
    return []
  if not os.path.isdir(directory):
    raise ValueError(f'{directory} is a file: not replaced')
  found = sorted(os.listdir(directory))
  marker = os.path.join(directory, MARKER)
  if found and not os.path.isfile(marker):
    more = ', ...' if len(found) > 5 else ''
    raise ValueError(
      f'{directory} exists and holds files that rl_jax did not write '
      f'({", ".join(found[:5])}{more}; it has no {MARKER}): not replaced. '
      'Choose another directory, or remove it'
    )
  written = read_json(marker).get('files') if found else []
  if not isinstance(written, list):
    raise ValueError(f'{marker} is damaged: it has no list of files')
  return [name for name in found if name not in (*written, MARKER)]


def _link(source: str, target: str) -> None:
  """A second name for a file, or for all files of a directory.

  Nothing is moved: a process that is killed leaves the old directory complete.
  """
  if os.path.isdir(source) and not os.path.islink(source):
    shutil.copytree(source, target, symlinks=True, copy_function=_link)
    return
  try:
    os.link(source, target, follow_symlinks=False)
  except OSError:  # a file system without links
    shutil.copy2(source, target, follow_symlinks=False)


def _sync(path: str) -> None:
  with open(path, 'rb') as file:
    os.fsync(file.fileno())


def write_json(directory: str, name: str, value: Mapping[str, Any]) -> None:
  """Writes readable JSON."""
  with open(os.path.join(directory, name), 'w', encoding='utf-8') as file:
    json.dump(value, file, indent=2, ensure_ascii=False)


def require_file(path: str) -> None:
  """Raises ValueError unless path is a regular file: others can block."""
  if not os.path.exists(path):
    raise ValueError(f'{path} does not exist')
  if not os.path.isfile(path):
    raise ValueError(f'{path} is not a regular file')


def require_size(path: str) -> None:
  """Raises ValueError unless path is a file of at most MOST_TEXT_BYTES."""
  require_file(path)
  if os.path.getsize(path) > MOST_TEXT_BYTES:
    raise ValueError(f'{path} has more than {MOST_TEXT_BYTES} bytes')


def read_text(path: str) -> str:
  """Reads a UTF-8 text of at most MOST_TEXT_BYTES, or raises ValueError."""
  require_size(path)
  try:
    with open(path, encoding='utf-8') as file:
      return file.read()
  except UnicodeDecodeError as error:
    raise ValueError(f'{path} is not UTF-8: {error}') from None


def read_json(path: str) -> dict[str, Any]:
  """Reads a JSON object.

  Raises: ValueError naming the file if it is missing, damaged, larger than
    MOST_TEXT_BYTES or not an object.
  """
  text = read_text(path)
  try:
    value = json.loads(text)
  except (ValueError, RecursionError) as error:
    raise ValueError(f'{path} is not JSON: {error}') from None
  if not isinstance(value, dict):
    raise ValueError(f'{path} is not a JSON object')
  return value


def save_tensors(
  directory: str,
  name: str,
  tensors: Mapping[str, np.ndarray],
  metadata: Mapping[str, str] | None = None,
) -> None:
  """Writes a safetensors file of contiguous arrays."""
  lib = require('safetensors.numpy', 'writing weights')
  lib.save_file(dict(tensors), os.path.join(directory, name), metadata=metadata)


def save_shards(
  directory: str,
  stem: str,
  tensors: Iterable[tuple[str, np.ndarray]],
  metadata: Mapping[str, str] | None = None,
) -> None:
  """Writes STEM.safetensors, or shards of it and STEM.safetensors.index.json.

  The tensors are taken one by one, and those of one shard are held: at most
  SHARD_BYTES, or one tensor that is larger.
  """
  shards, total = [], 0
  for shard in _in_shards(tensors):
    save_tensors(directory, _shard_name(stem, len(shards)), shard, metadata)
    shards.append(list(shard))
    total += sum(array.nbytes for array in shard.values())
    shard.clear()  # the next one is made while this name is alive
  count, weight_map = len(shards), {}
  for number, names in enumerate(shards):
    file = f'{stem}.safetensors'
    if count > 1:
      file = f'{stem}-{number + 1:05}-of-{count:05}.safetensors'
    weight_map |= dict.fromkeys(names, file)
    old = os.path.join(directory, _shard_name(stem, number))
    os.rename(old, os.path.join(directory, file))
  if count > 1:
    index = {'metadata': {'total_size': total}, 'weight_map': weight_map}
    write_json(directory, f'{stem}.safetensors.index.json', index)


def _in_shards(tensors):
  """Dicts of tensors, each within SHARD_BYTES if possible."""
  held, size = {}, 0
  for name, array in tensors:
    if held and size + array.nbytes > SHARD_BYTES:
      yield held
      held, size = {}, 0
    held[name] = array
    size += array.nbytes
    del array
  yield held


def _shard_name(stem: str, number: int) -> str:
  return f'{stem}-{number}.part'


def tensor_files(directory: str, stem: str) -> list[str]:
  """The paths of what save_shards wrote, or a program of the same form.

  Raises: ValueError naming an index that names no files of its directory.
  """
  index = os.path.join(directory, f'{stem}.safetensors.index.json')
  names = [f'{stem}.safetensors']
  if os.path.exists(index):
    table = read_json(index).get('weight_map')
    names = list(table.values()) if isinstance(table, dict) else [None]
  for name in names:
    if not isinstance(name, str) or os.path.basename(name) != name:
      raise ValueError(
        f'{index}: weight_map names {name!r:.80}, not a file here'
      )
  return [os.path.join(directory, name) for name in sorted(set(names))]


def host_copy(x: Any) -> np.ndarray:
  """The array in the host's memory.

  np.asarray of a jax.Array would keep the copy as long as the array lives.
  """
  return np.asarray(x if isinstance(x, np.ndarray) else jnp.copy(x), order='C')


def open_tensors(path: str) -> dict[str, Any]:
  """Views of the tensors of a safetensors file; indexing one reads it.

  Raises: ValueError naming the file, or the tensor that is not of floats.
  """
  lib = require('safetensors', 'reading weights')
  require_file(path)
  try:
    handle = lib.safe_open(path, framework='numpy')
  except lib.SafetensorError as error:
    raise ValueError(f'{path} is damaged: {error}') from error
  views = {name: handle.get_slice(name) for name in handle.keys()}
  for name, view in views.items():
    if view.get_dtype() not in FLOAT_TYPES:
      raise ValueError(
        f'{name} ({path}) has type {view.get_dtype()}, not one of '
        + ', '.join(FLOAT_TYPES)
      )
  return views
