"""Work directories of runs: finds them, reads them, groups them.

Runs are grouped by their configuration without the seed, whatever their
directories are called, and labelled by what differs between the groups.
"""

from collections.abc import Sequence
import dataclasses
import glob
import json
import math
import os
import re
from typing import Any

from absl import logging

from experiments.reports import labels as labels_lib
from experiments.reports import typed
from rl_jax.config import ExperimentConfig
from rl_jax.records import metrics
from rl_jax.runs import directory
from rl_jax.runs.directory import CONFIG_FILE

FILES = (CONFIG_FILE, metrics.METRICS, metrics.ROLLOUTS)


@dataclasses.dataclass(frozen=True)
class Run:
  """One work directory."""

  path: str
  label: str  # shared by the seeds of a configuration
  rows: list[dict[str, Any]]
  config: ExperimentConfig | None
  notes: list[str]  # problems of the run, in words
  method: str | None = None  # as the user typed it, see reports.typed

  @property
  def finished(self) -> bool:
    """True if the last row is that of the last iteration."""
    total = self.config.iterations if self.config else math.inf
    return bool(self.rows) and self.rows[-1]['step'] >= total


def find(paths: Sequence[str]) -> list[str]:
  """Work directories: those given, and those below other directories.

  A path may be a pattern, as 'runs/*'. Of a directory that is none itself,
  such as that of a sweep, all work directories below are found.

  Raises:
    ValueError: a path does not exist or holds no run; a run is given twice.
  """
  found = []
  for path in paths:
    matches = [path] if os.path.isdir(path) else sorted(glob.glob(path))
    matches = [match for match in matches if os.path.isdir(match)]
    if not matches:
      problem = 'it is a file' if os.path.isfile(path) else 'it does not exist'
      raise ValueError(f'{path!r} is not a work directory: {problem}')
    runs = [run for match in matches for run in _below(match)]
    if not runs:
      raise ValueError(
        f'{path!r} is not a work directory and holds none: it has none of '
        f'{", ".join(FILES)}'
      )
    found += runs
  normal = [os.path.normpath(path) for path in found]
  for path in normal:
    if normal.count(path) > 1:
      raise ValueError(f'the work directory {path} is given twice')
  return found


def _below(path: str) -> list[str]:
  """The path if it is a work directory, or those below it."""
  found = []
  for folder, inside, names in os.walk(path):
    inside.sort()
    if set(FILES) & set(names):
      found.append(folder)
      inside.clear()
  return found


def read_runs(paths: Sequence[str]) -> list[Run]:
  """The runs at or below the paths, with labels.

  Two runs of one configuration and one seed are not two seeds: the second gets
  its own label. Raises ValueError as `find`.
  """
  places = find(paths)
  printed: set[str] = set()
  runs = [_read(path, printed) for path in places]
  keys = [_key(run) for run in runs]
  known = {
    key: run
    for key, run in reversed([*zip(keys, runs, strict=True)])
    if run.config is not None
  }
  several = len(known) > 1
  names = dict(zip(known, _labels([*known.values()]), strict=True))
  by_path = path_labels(places)
  taken, labelled = set(), []
  for run, key, name in zip(runs, keys, by_path, strict=True):
    # A single configuration is called as its directories are.
    label = names[key] if several and key in names else name
    if not several and key in names:
      label = by_path[keys.index(key)]
    if run.config is not None and (key, run.config.seed) in taken:
      label = f'{label} ({os.path.basename(os.path.normpath(run.path))})'
    taken.add((key, run.config.seed if run.config else run.path))
    labelled.append(dataclasses.replace(run, label=label))
  return labelled


def _labels(runs: Sequence[Run]) -> list[str]:
  """The labels of the runs that have a configuration."""
  configs = [run.config for run in runs if run.config is not None]
  return labels_lib.labels(configs, [run.method for run in runs])


def path_labels(workdirs: Sequence[str]) -> list[str]:
  """A label for each path, shared by seeds, without common parents.

  Seeds are paths that differ only in a last part `seed<number>`.
  """
  paths = [os.path.normpath(path) for path in workdirs]
  names = [re.sub(r'[/_-]?seed_?\d+$', '', path) for path in paths]
  if len(set(names)) < 2:
    return [os.path.basename(name) for name in names]
  shared = os.path.commonpath(names)
  return [os.path.relpath(name, shared) for name in names]


def read_lines(path: str) -> tuple[list[dict[str, Any]], list[str]]:
  """(rows with a step, notes on the lines that are left out).

  An interrupted run may leave an incomplete last line, and a running one has
  one while it writes.
  """
  name = os.path.basename(path)
  if not os.path.exists(path):
    return [], [f'{name} is missing']
  rows, notes = [], []
  try:
    with open(path, 'rb') as file:
      lines = file.readlines()
  except OSError as error:
    return [], [f'{name} cannot be read: {error.strerror}']
  for number, line in enumerate(lines, start=1):
    try:
      row = metrics.from_json(json.loads(line))
      if not isinstance(row, dict) or not isinstance(row.get('step'), int):
        raise ValueError('not an object with a step')
      rows.append(row)
    except (ValueError, RecursionError):
      what = 'is not a row' if line.endswith(b'\n') else 'is incomplete'
      notes.append(f'line {number} of {name} {what}: left out')
  if not rows and not notes:
    notes.append(f'{name} is empty')
  return rows, notes


def _read(path: str, printed: set[str]) -> Run:
  """One run; what `printed` holds was logged for another one."""
  rows, notes = read_lines(os.path.join(path, metrics.METRICS))
  config, file = None, os.path.join(path, CONFIG_FILE)
  try:
    config = directory.saved_config(path)
  except FileNotFoundError:
    notes.append(f'{CONFIG_FILE} is missing')
  except (OSError, ValueError) as error:
    note = str(error).splitlines()[0].replace(file, CONFIG_FILE)
    if note not in printed:
      logging.warning('%s', error)  # says which --import may help
    printed.add(note)
    notes.append(note)
  notes += _course(rows, config)
  return Run(path, '', rows, config, notes, typed.method_of(path))


def _key(run: Run) -> str:
  """Equal for runs that differ in the seed only."""
  if run.config is not None:
    return labels_lib.key(run.config)
  try:  # classes that this process does not know, such as a user's task
    with open(os.path.join(run.path, CONFIG_FILE)) as file:
      fields = json.load(file)
    return json.dumps({k: v for k, v in fields.items() if k != 'seed'})
  except (OSError, ValueError, AttributeError, RecursionError):
    return run.path


def _course(rows, config) -> list[str]:
  """Notes on an unfinished run and on values that are not finite."""
  notes = []
  if not rows:
    return []
  if config is not None and rows[-1]['step'] < config.iterations:
    notes.append(
      f'at iteration {rows[-1]["step"]} of {config.iterations}: unfinished'
    )
  skipped = sum(_number(row.get('train/skipped')) > 0 for row in rows)
  if skipped:
    notes.append(f'{skipped} iterations had a step that was not finite')
  last = [
    name
    for name in ('reward/mean', 'train/loss', 'policy/entropy')
    if name in rows[-1] and not math.isfinite(_number(rows[-1][name]))
  ]
  if last:
    notes.append(f'FAILED: {", ".join(last)} not finite in the last row')
  return notes


def _number(value: Any) -> float:
  """The value, NaN if it is not a number."""
  return value if isinstance(value, (int, float)) else math.nan
