"""Files that a command writes at its end: checked before it computes."""

from collections.abc import Iterable, Mapping
import json
import math
import os
from typing import Any

from rl_jax.records import metrics
from rl_jax.records.trackers import services
from rl_jax.runs import directory, fingerprints, lock, policy
from rl_jax.runtime.writer import sole_writer
from rl_jax.verification import former_journal

RUN_FILES = (  # what a run writes to its work directory
  directory.CONFIG_FILE,
  fingerprints.FILE,
  former_journal.FILE,
  lock.FILE,
  metrics.METRICS,
  metrics.ROLLOUTS,
  policy.DESCRIPTION,
  services.FILE,
  'command.json',  # see reports.typed
)


def check_file(flag: str, path: str) -> None:
  """Raises ValueError naming the flag if no file can be written there."""
  folder = os.path.dirname(path) or '.'
  writable = os.path.isdir(folder) and os.access(folder, os.W_OK)
  if not path or os.path.isdir(path) or not writable:
    raise ValueError(f'--{flag}={path}: no file can be written there')
  check_regular(flag, path)
  check_not_of_run(flag, path)


def check_regular(flag: str, path: str) -> None:
  """Raises ValueError naming the flag for a device, a pipe or a socket."""
  if os.path.exists(path) and not os.path.isfile(path):
    raise ValueError(
      f'--{flag}={path} is a device, a pipe or a socket, which a file would '
      'replace: give the name of a file'
    )


def check_not_of_run(flag: str, path: str) -> None:
  """Raises ValueError naming the flag if a run wrote, or will write, that."""
  folder, name = os.path.split(os.path.realpath(path))
  is_run = os.path.exists(os.path.join(folder, directory.CONFIG_FILE))
  if is_run and name in RUN_FILES:
    raise ValueError(
      f'--{flag}={path} would replace {name} of the run in {folder}: give '
      'another'
    )


def check_not_source(flag: str, source: str | None, out: str) -> None:
  """Raises ValueError if --out is the place that the flag names."""
  if source is not None and os.path.realpath(source) == os.path.realpath(out):
    raise ValueError(f'--out={out} would replace --{flag}: give another')


def finite(value: Any) -> Any:
  """The value, None in place of numbers that JSON does not have, as NaN."""
  if isinstance(value, Mapping):
    return {name: finite(x) for name, x in value.items()}
  if isinstance(value, (list, tuple)):
    return [finite(x) for x in value]
  infinite = isinstance(value, float) and not math.isfinite(value)
  return None if infinite else value


def write_json(path: str, value: Any) -> None:
  """Writes a JSON file at once, or not at all."""
  with sole_writer().replacing(path) as file:
    file.write(json.dumps(value).encode())


def write_rows(path: str, rows: Iterable[Mapping[str, Any]]) -> None:
  """Writes a JSONL file at once, or not at all."""
  with sole_writer().replacing(path) as file:
    file.writelines(json.dumps(row).encode() + b'\n' for row in rows)
