"""Writes metrics.jsonl and rollouts.jsonl of a run, and rows to trackers.

metrics.jsonl has one JSON object per iteration: `step`, `time/wall_seconds`
(of all sessions of the run together) and metrics by their fixed names, such as
`reward/mean`, `policy/entropy`, `policy/kl_ref`, `policy/clip_fraction`,
`rollout/length`, `train/grad_norm`, `time/generate_seconds`. Only `time/*` may
differ between a run and the same run interrupted and resumed.

JSON has no NaN: non-finite numbers are written as the strings "NaN",
"Infinity" and "-Infinity", which `float()` reads back, as `read_jsonl` does.
"""

from collections.abc import Iterable, Mapping, Sequence
import json
import math
import os
import sys
import time
from typing import Any, ClassVar

from absl import logging
from etils import epath
import jax
import numpy as np

from rl_jax.records.line_file import LineFile
from rl_jax.records.trackers import Guarded, TensorBoard
from rl_jax.runtime import processes
from rl_jax.runtime.stateful import Stateful
from rl_jax.runtime.writer import Writer, sole_writer

METRICS, ROLLOUTS = 'metrics.jsonl', 'rollouts.jsonl'
_ARRAYS = (np.ndarray, np.generic, jax.Array)
_NON_FINITE = {'NaN', 'Infinity', '-Infinity'}


def to_json(value: Any) -> Any:
  """A value that JSON can hold: arrays become numbers or nested lists."""
  if isinstance(value, Mapping):
    return {str(k): to_json(v) for k, v in value.items()}
  if isinstance(value, (list, tuple)):
    return [to_json(v) for v in value]
  if isinstance(value, _ARRAYS):
    return to_json(np.asarray(value).tolist())
  if isinstance(value, float) and not math.isfinite(value):
    if math.isnan(value):
      return 'NaN'
    return 'Infinity' if value > 0 else '-Infinity'
  return value


def from_json(value: Any) -> Any:
  """Undoes the strings of non-finite numbers, at any depth.

  A whole number that no float can hold is infinite, too.
  """
  if isinstance(value, dict):
    return {k: from_json(v) for k, v in value.items()}
  if isinstance(value, list):
    return [from_json(v) for v in value]
  if isinstance(value, str) and value in _NON_FINITE:
    return float(value)
  if isinstance(value, int) and abs(value) > sys.float_info.max:
    return math.inf if value > 0 else -math.inf
  return value


def read_jsonl(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
  """The complete lines of a JSON-lines file; a partial last line is left out.

  Raises:
    ValueError: naming file and line, if a complete line is not JSON.
  """
  rows = []
  lines = epath.Path(path).read_bytes().split(b'\n')
  for number, line in enumerate(lines[:-1], start=1):
    try:
      rows.append(from_json(json.loads(line)))
    except ValueError as error:
      raise ValueError(f'{path}:{number} is not JSON: {error}') from error
  return rows


def save_arrays(
  path: str | os.PathLike[str], tree: Any, writer: Writer
) -> None:
  """Writes the arrays of a tree as .npz, named by their paths in the tree.

  Of several processes only process 0 writes. A full disk is only logged.
  """
  if not processes.is_main():
    return
  leaves, _ = jax.tree.flatten_with_path(jax.device_get(tree))
  arrays = {
    jax.tree_util.keystr(keys, simple=True, separator='.'): leaf
    for keys, leaf in leaves
  }
  try:
    with writer.replacing(path) as file:
      np.savez_compressed(file, **arrays)
  except OSError as error:
    logging.warning('%s cannot be written: %s', path, error)


def _to_host(metrics: Mapping[str, Any], arrays: Any) -> tuple[dict, Any]:
  """(Python numbers in the order given, arrays) by a single device_get."""
  on_host, arrays = processes.read((dict(metrics), arrays))
  return {
    name: value.item() if isinstance(value, _ARRAYS) else value
    for name, value in ((name, on_host[name]) for name in metrics)
  }, arrays


class MetricsWriter(Stateful):
  """Appends to the files of a workdir; resumes without gaps or repeats.

  Every line is flushed when it is written; a full disk costs lines, which are
  counted in warnings, and never the run. A checkpoint stores `offsets()`.
  Before its first line a run calls `truncate_to(offsets)`: this removes what an
  interrupted iteration has written, also a partial line, and the repeated
  iteration writes it again. Only process 0 writes files; on the other processes
  rows are only returned.
  """

  name: ClassVar[str] = 'files'

  def __init__(
    self,
    workdir: str | os.PathLike[str],
    *,
    trackers: Sequence[Any] | None = None,
    writer: Writer | None = None,
  ):
    """The files of a work directory.

    trackers: what `trackers.make` returns; by default only TensorBoard.
    writer: the right to write there, by default not shared with anyone.
    """
    self.workdir = epath.Path(workdir)
    self._files = {}
    writer = writer or sole_writer()
    if processes.is_main():
      self.workdir.mkdir(parents=True, exist_ok=True)
      for name in (METRICS, ROLLOUTS):
        self._files[name] = LineFile(self.workdir / name, writer)
    if trackers is None:
      trackers = [Guarded(TensorBoard(self.workdir))]
    self._trackers = list(trackers) if processes.is_main() else []
    for tracker in self._trackers:
      tracker.start(None)
    self._seconds_before = 0.0
    self._started = time.monotonic()
    self.last: dict[str, Any] = {}  # the newest row, as host numbers

  def seconds(self) -> float:
    """Wall seconds of this run, earlier sessions included."""
    return self._seconds_before + time.monotonic() - self._started

  def log(
    self, step: int, metrics: Mapping[str, Any], rollouts: Any = None
  ) -> dict[str, Any]:
    """Writes and returns one row; values are numbers or scalar arrays.

    The step counts finished iterations, so a measurement before training has
    step 0. Everything known of a step goes into its one row. `rollouts` is a
    rollout_log.RolloutLog: its arrays are read together with the metrics.

    Raises:
      ValueError: a value is not a scalar.
    """
    for name, value in metrics.items():
      if np.ndim(value) != 0:
        raise ValueError(f'{name} has shape {np.shape(value)}: not a scalar')
    row = {'step': int(step), 'time/wall_seconds': round(self.seconds(), 3)}
    rollouts = rollouts if self._files else None  # read where it is written
    metrics, arrays = _to_host(metrics, rollouts and rollouts.arrays)
    if rollouts:
      self.log_rollouts(step, rollouts.lines(arrays))
    self.last = row | metrics
    self._append(METRICS, [to_json(self.last)])
    for tracker in self._trackers:
      tracker.log(self.last)
    return self.last

  def log_rollouts(self, step: int, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes one line per response: text, reward, values of its tokens, ...

    Call it before `log` of the same step: a reader that sees the metrics of a
    step then finds its rollouts too.
    """
    self._append(ROLLOUTS, [{'step': int(step), **to_json(r)} for r in rows])

  def _append(self, name: str, rows: list[dict[str, Any]]) -> None:
    if name in self._files:
      lines = [json.dumps(row, allow_nan=False) for row in rows]
      self._files[name].append(lines)

  def offsets(self) -> dict[str, Any]:
    """Bytes of each file and seconds so far, for the checkpoint; JSON-able.

    The files are synchronised to the disk, so that after a power failure they
    hold at least the bytes that a checkpoint counts.
    """
    found: dict[str, Any] = {'time/wall_seconds': self.seconds()}
    return found | {name: file.sync() for name, file in self._files.items()}

  def host(self) -> dict[str, Any]:
    """Returns what `offsets` returns."""
    return {'offsets': self.offsets()}

  def restore(self, arrays: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """Cuts the files; the iteration after the checkpoint is logged next."""
    del arrays
    next_step = host['counters']['iteration'] + 1
    self.truncate_to(host['offsets'], next_step=next_step)

  def truncate_to(
    self, offsets: Mapping[str, Any], next_step: int | None = None
  ) -> None:
    """Cuts the files to the sizes of a checkpoint; `last` is the last row kept.

    Without one, {}, they begin again, and what was there keeps another name.

    Args:
      offsets: what `offsets` returned when the checkpoint was saved.
      next_step: the first step that will be logged, for trackers: they may
        have it already.
    """
    self._seconds_before = float(offsets.get('time/wall_seconds', 0.0))
    self._started = time.monotonic()
    for tracker in self._trackers:
      tracker.start(next_step)
    step = None if next_step is None else next_step - 1
    for name, file in self._files.items():
      if offsets:
        file.cut(int(offsets.get(name, 0)), step)
      elif kept := file.set_aside():
        logging.warning(
          'there is no checkpoint to continue: %s is kept as %s',
          self.workdir / name,
          kept.name,
        )
    self.last = self._last_row(step if offsets else None)

  def _last_row(self, step: int | None) -> dict[str, Any]:
    """The newest row of the file; {} if there is none, or if it is damaged.

    Warns of lines that are not rows, of steps that are not in order, and if the
    newest one is not that of the checkpoint, `step`.
    """
    if not self._files:
      return {}
    row: dict[str, Any] = {}
    newest, wrong = -1, []
    path = self.workdir / METRICS
    with path.open('rb') as file:
      for number, line in enumerate(file, start=1):
        try:
          row = json.loads(line)
          good, newest = row['step'] > newest, max(newest, row['step'])
        except (ValueError, LookupError, TypeError, RecursionError):
          row, good = {}, False
        if not good:
          wrong.append(number)
    if wrong:
      logging.warning(
        '%s:%d is not a row, or its step is not after the one before '
        '(%d lines): '
        'it was damaged by an earlier session',
        path,
        wrong[0],
        len(wrong),
      )
    if step and newest != step:
      logging.warning(
        '%s ends with step %d, and the checkpoint is of step %d: rows are '
        'missing',
        path,
        newest,
        step,
      )
    return from_json(row)

  def close(self) -> None:
    """Closes the files; the writer cannot be used after."""
    for file in (*self._files.values(), *self._trackers):
      file.close()


class DelayedMetrics:
  """Keeps the newest row on the device and writes it one iteration later.

  So the host does not wait for the update that it has just dispatched. Before
  a checkpoint and at the end, `flush` writes the pending row: saving waits for
  the same arrays anyway, and no pending row needs to be restored.
  """

  def __init__(self, writer: MetricsWriter):
    self._writer = writer
    self._pending: tuple[int, dict[str, Any], Any] | None = None

  def push(
    self, step: int, metrics: Mapping[str, Any], rollouts: Any = None
  ) -> dict[str, Any] | None:
    """Keeps a row; writes and returns the one before it, as host numbers."""
    written = self.flush()
    self._pending = (step, dict(metrics), rollouts)
    return written

  def flush(self) -> dict[str, Any] | None:
    """Writes and returns the pending row (one device_get), or None."""
    if self._pending is None:
      return None
    row, self._pending = self._pending, None
    return self._writer.log(*row)
