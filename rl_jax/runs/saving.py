"""Saves checkpoints to continue from, the best ones, and weights only."""

from collections.abc import Iterable, Mapping, Sequence
import contextlib
import math
import os
from typing import Any

from absl import logging

from rl_jax import overrides
from rl_jax.records.checkpoints import checkpointer, files
from rl_jax.records.checkpoints.checkpointer import CheckpointConfig
from rl_jax.runtime import processes
from rl_jax.runtime.stateful import Stateful
from rl_jax.runtime.writer import Writer, sole_writer

CHECKPOINTS, WEIGHTS = 'checkpoints', 'weights'
_ALL = 1 << 60  # steps


def arrays_of(parts: Sequence[Stateful]) -> dict[str, Any]:
  """The tree of arrays of a checkpoint; ValueError if two have one name."""
  return _joined((part.name, part.arrays()) for part in parts)


def host_of(parts: Sequence[Stateful]) -> dict[str, Any]:
  """The JSON object of a checkpoint; ValueError if two have one name."""
  return _joined((part.name, part.host()) for part in parts)


def _joined(parts: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
  """The entries of all; parts: (name, entries) of each."""
  found: dict[str, Any] = {}
  owners: dict[str, str] = {}
  for part, entries in parts:
    for name in entries:
      if name in found:
        raise ValueError(
          f'{owners[name]} and {part} both save {name!r} in checkpoints'
        )
      owners[name] = part
    found |= entries
  return found


class Saver:
  """The checkpoints of one work directory.

  `checkpoints/` has the newest and the best steps of the whole state;
  `weights/`, with checkpoint.weights_every, the trained weights of all its
  steps, in the same form: about a third of the size, for evaluation and export.

  writer: the right to write in the work directory.
  """

  def __init__(
    self,
    workdir: str,
    config: CheckpointConfig,
    writer: Writer | None = None,
  ):
    self._config, self._workdir = config, workdir
    self._writer = writer or sole_writer()
    self._full = checkpointer.Checkpointer(
      os.path.join(workdir, CHECKPOINTS),
      keep_last=config.keep_last,
      keep_best=config.keep_best,
      best_metric=config.best_metric,
      on_save_error=config.on_save_error,
      writer=self._writer,
    )
    self._weights = None
    if config.weights_every:
      self._weights = checkpointer.Checkpointer(
        os.path.join(workdir, WEIGHTS),
        keep_last=_ALL,
        keep_best=0,
        on_save_error=config.on_save_error,
        writer=self._writer,
      )
    # (step, best_metric) of those that have it.
    self._best: list[Any] = processes.on_main(self._best_on_disk)

  def _best_on_disk(self):
    directory, metric = self._full.directory, self._config.best_metric
    found = []
    for step in files.committed_steps(directory):
      manifest, _ = files.read_manifest(files.step_path(directory, step))
      score = (manifest or {}).get('metrics', {}).get(metric, math.nan)
      if math.isfinite(score):
        found.append([step, score])
    return found

  def check_metric(self, row: Mapping[str, Any]) -> None:
    """Raises ValueError for a best_metric that an evaluation does not have.

    The default is not asked for: evaluations of losses, or of sets only.
    """
    name, default = self._config.best_metric, CheckpointConfig.best_metric
    chosen = name != default and self._config.keep_best > 0
    if chosen and name.startswith('evaluation/') and name not in row:
      text = overrides.unknown_name('metric', name, row)
      raise ValueError(f'checkpoint.best_metric: {text}')

  def due(self, iteration: int, metrics: Mapping[str, Any]) -> bool:
    """Returns whether the state of an iteration is to be saved.

    At every checkpoint.every, and where an evaluation is better than the
    checkpoints that are kept for theirs, so that the best is never lost.
    """
    if iteration % self._config.every == 0:
      return True
    score = metrics.get(self._config.best_metric)
    if not isinstance(score, float) or not math.isfinite(score):
      return False  # known on the host: metrics of an evaluation
    count = self._config.keep_best
    best = sorted((score for _, score in self._best), reverse=True)[:count]
    return count > 0 and (len(best) < count or score > best[-1])

  def save(
    self,
    step: int,
    tree: dict[str, Any],
    host_state: dict[str, Any],
    row: Mapping[str, Any],
  ) -> None:
    """Starts a checkpoint; metrics of the row decide whether it is kept."""
    metrics = {
      name: value
      for name, value in row.items()
      if name.startswith(('evaluation', 'reward', self._config.best_metric))
    }
    self._full.save(step, tree, host_state, metrics)
    score = metrics.get(self._config.best_metric, math.nan)
    if math.isfinite(score):
      self._best.append([step, score])

  def save_weights(self, step: int, params: Any) -> None:
    """Starts to save the trained weights of an iteration, if it is due."""
    if self._weights and step % self._config.weights_every == 0:
      self._weights.save(step, {'state': {'params': params}})

  def restore(self, tree: Any) -> checkpointer.Restored | None:
    """The newest valid step onto the tree; None for a run that begins.

    Later ones cannot be used: they are set aside, and will be saved again.
    """
    restored = self._full.restore(checkpointer.abstract_tree(tree))
    if restored is None:
      processes.on_main(self._set_weights_aside)
    else:
      processes.on_main(lambda: self._full.set_newer_aside(restored.step))
      self._best = [x for x in self._best if x[0] <= restored.step]
    return restored

  def _set_weights_aside(self):
    path = os.path.join(self._workdir, WEIGHTS)
    if not os.path.exists(path):
      return
    logging.warning(
      'there is no checkpoint to continue: %s is kept as %s',
      path,
      os.path.basename(self._writer.set_aside(path)),
    )

  def oldest_host_state(self) -> dict[str, Any]:
    """See Checkpointer; {} without a checkpoint."""
    return self._full.oldest_host_state() or {}

  def check_newest(self) -> None:
    """Waits, and reads the newest checkpoint back."""
    self._full.check_newest()
    if self._weights:
      self._weights.wait()

  def close(self) -> None:
    """Waits for what is in flight."""
    with contextlib.ExitStack() as stack:
      stack.callback(self._full.close)
      if self._weights:
        stack.callback(self._weights.close)


def steps_of(workdir: str) -> list[int]:
  """The iterations whose weights a work directory holds, in order."""
  return sorted({*_steps(workdir, CHECKPOINTS), *_steps(workdir, WEIGHTS)})


def _steps(workdir, folder):
  return files.committed_steps(files.epath.Path(os.path.join(workdir, folder)))


def newest_of(workdir: str, step: int | None) -> str:
  """The folder to read weights from: checkpoints/, or weights/ if need be.

  Raises ValueError for a step that neither has, with those that there are.
  """
  full, weights = (
    os.path.join(workdir, name) for name in (CHECKPOINTS, WEIGHTS)
  )
  steps, others = (_steps(workdir, name) for name in (CHECKPOINTS, WEIGHTS))
  if step is not None and step not in (*steps, *others):
    known = ', '.join(map(str, steps_of(workdir))) or 'none'
    raise ValueError(
      f'{workdir} has no checkpoint of iteration {step}; there are: {known}'
    )
  wanted = others if step is None else {step} & set(others)
  has_it = steps if step is None else {step} & set(steps)
  return weights if wanted and not has_it else full
