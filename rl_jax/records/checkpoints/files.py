"""Step directories of a checkpoint: names, manifests, checksums, deletion."""

from collections.abc import Collection
import json
import math
import os
import re
from typing import Any
import zlib

from absl import logging
from etils import epath

from rl_jax.runtime.writer import Writer

FORMAT = 1  # Incremented when older code cannot read the files.
COMMIT = 'COMMITTED'
# Of the arrays, without which Orbax cannot read any. It merges the files of all
# processes into this one, and if it finds none it only logs a warning.
INDEX = 'arrays/manifest.ocdbt'
_NAME = re.compile('step_([0-9]{8,18})')  # as step_path writes it
_PATTERN = '[]*?\\'  # Orbax finds the files that it merges by a glob.


def check_directory(directory: str | os.PathLike[str]) -> None:
  """Raises ValueError if checkpoints cannot be saved below this path."""
  text = os.fspath(directory)
  found = [c for c in _PATTERN if c in text]
  if found:
    raise ValueError(
      f'{text!r} contains {" ".join(found)}, which Orbax takes for a pattern: '
      'checkpoints saved there could not be restored. Use another path (a '
      'symbolic link to this one also works).'
    )
  try:
    text.encode()
  except UnicodeEncodeError as error:
    raise ValueError(
      f'{text!r} is not valid UTF-8: use another path'
    ) from error


def step_path(directory: epath.Path, step: int) -> epath.Path:
  """The directory of a step."""
  return directory / f'step_{step:08d}'


def all_steps(directory: epath.Path) -> list[int]:
  """Steps with a directory, oldest first, committed or not."""
  if not directory.exists():
    return []
  found = (_NAME.fullmatch(p.name) for p in directory.iterdir())
  return sorted(int(name[1]) for name in found if name)


def committed_steps(directory: epath.Path) -> list[int]:
  """Steps that were committed, oldest first; files may be damaged since."""
  return [
    step
    for step in all_steps(directory)
    if (step_path(directory, step) / COMMIT).exists()
  ]


def best_first(
  directory: epath.Path, steps: list[int], metric: str
) -> list[int]:
  """The steps that have a finite `metric`, largest and newest first."""
  scores = []
  for step in steps:
    manifest, _ = read_manifest(step_path(directory, step))
    score = (manifest or {}).get('metrics', {}).get(metric, math.nan)
    if math.isfinite(score):
      scores.append((score, step))
  return [step for _, step in sorted(scores, reverse=True)]


def kept(
  directory: epath.Path,
  newest: int,
  keep_last: int,
  keep_best: int,
  metric: str,
) -> set[int]:
  """The last and the best committed steps up to `newest`."""
  steps = [step for step in committed_steps(directory) if step <= newest]
  best = best_first(directory, steps, metric)[:keep_best]
  return {*steps[-keep_last:], *best}


def commit(path: epath.Path, manifest: dict[str, Any]) -> None:
  """Writes the manifest with the checksum of every file, then of itself.

  Raises:
    OSError: a file that a restore needs was not written.
  """
  checksums = {
    name: size_and_crc(path / name, sync=True) for name in files(path)
  }
  if missing := _missing(checksums):
    raise OSError(missing)
  body = json.dumps({**manifest, 'files': checksums})
  temporary = path / f'{COMMIT}.tmp'
  temporary.write_text(f'{body}\n{zlib.crc32(body.encode())}\n')
  size_and_crc(temporary, sync=True)
  temporary.replace(path / COMMIT)


def _missing(names: Collection[str]) -> str:
  """The file that a restore needs besides those written; empty if none."""
  return '' if INDEX in names else f'{INDEX} was not written'


def read_manifest(path: epath.Path) -> tuple[dict[str, Any] | None, str]:
  """The manifest of a step directory, or None and the reason."""
  path = path / COMMIT
  if not path.exists():
    return None, 'it was never committed (the process died while saving)'
  try:
    body, crc = path.read_text().split('\n')[:2]
    if zlib.crc32(body.encode()) != int(crc):
      return None, f'{COMMIT} has changed (CRC-32)'
  except (OSError, ValueError) as error:
    return None, f'{COMMIT} is damaged ({type(error).__name__}: {error})'
  try:
    manifest = json.loads(body)
    if manifest['format'] > FORMAT:
      return None, f'its format {manifest["format"]} is newer than {FORMAT}'
    fields = [manifest[name] for name in ('files', 'arrays', 'metrics')]
    if all(isinstance(field, dict) for field in fields):
      return manifest, ''
  except (ValueError, LookupError, TypeError, RecursionError):
    pass
  return None, f'{COMMIT} is not a manifest'


def verify(path: epath.Path) -> str:
  """Empty if every file of the step is as committed, else the reason."""
  manifest, reason = read_manifest(path)
  if manifest is None:
    return reason
  if missing := _missing(manifest['files']):
    return missing
  for name, (size, crc) in manifest['files'].items():
    try:
      found_size, found_crc = size_and_crc(path / name)
    except OSError as error:
      return f'{name} cannot be read ({type(error).__name__}: {error})'
    if found_size != size:
      return f'{name} has {found_size} bytes instead of {size}'
    if found_crc != crc:
      return f'{name} has changed (CRC-32 {found_crc:08x}, not {crc:08x})'
  return ''


def check_json(value: Any, path: str) -> None:
  """Raises TypeError where a value would come back from JSON as another."""
  if isinstance(value, dict):
    for key, item in value.items():
      if type(key) is not str:
        raise TypeError(f'{path} has the key {key!r}, which is not a string')
      check_json(item, f'{path}.{key}')
  elif isinstance(value, list):
    for i, item in enumerate(value):
      check_json(item, f'{path}.{i}')
  elif value is not None and type(value) not in (str, int, float, bool):
    raise TypeError(
      f'{path} is a {type(value).__name__}, which JSON does not keep'
    )


def files(root: epath.Path) -> list[str]:
  """Every file below `root`, as relative paths."""
  found = []
  for path in root.iterdir():
    if path.is_dir():
      found += [f'{path.name}/{name}' for name in files(path)]
    else:
      found.append(path.name)
  return sorted(found)


def size_and_crc(path: epath.Path, sync: bool = False) -> tuple[int, int]:
  """Bytes and CRC-32 of a file; `sync` forces a local file to the disk."""
  size, crc = 0, 0
  with path.open('rb') as file:
    while chunk := file.read(1 << 22):
      size, crc = size + len(chunk), zlib.crc32(chunk, crc)
    if sync and is_local(path):
      os.fsync(file.fileno())
  return size, crc


def is_local(path: str | os.PathLike[str]) -> bool:
  """Returns whether the path lies in a file system, where renaming is
  atomic.
  """
  return '://' not in os.fspath(path)


def delete(path: epath.Path, writer: Writer) -> None:
  """Deletes a step directory, if there is one.

  An interrupted delete never leaves a step that looks committed.
  """
  if is_local(path):
    writer.delete_folder(path)
    return
  writer.check()
  (path / COMMIT).unlink(missing_ok=True)
  if path.exists():
    path.rmtree()


def quiet_orbax() -> None:
  """Keeps Orbax's log to one line per warning or error.

  It logs dozens of lines per save and three tracebacks per failed save;
  Checkpointer reports failures itself. For programs. Idempotent.
  """
  logger = logging.get_absl_logger()
  if _quieten not in logger.filters:
    logger.addFilter(_quieten)


def _quieten(record) -> bool:
  if f'{os.sep}orbax{os.sep}' not in record.pathname:
    return True
  record.exc_info = record.exc_text = None
  return record.levelno >= logging.converter.STANDARD_WARNING
