"""Checkpoints that commit atomically, are verified when read, and fall back.

Layout of one step below the checkpoint directory:

  step_00000012/arrays/    the array tree, written by Orbax
  step_00000012/host.json  counters, positions, configuration
  step_00000012/COMMITTED  manifest: size and CRC-32 of every other file, names,
                           shapes and dtypes of the arrays, metrics, versions
                           of the software (see `versions`)

A step is written under a temporary name (`runtime.writer`) and gets its own one
when it is complete. COMMITTED is written last, so a step without it is ignored,
and the CRC of every file is compared before anything is read: a damaged file
costs one checkpoint, not the run. The directory may be any path that epath
accepts; where it is not in a file system, a step has its name from the start.
With several processes each writes its own shards and process 0 everything else,
to the same directory.
"""

from collections.abc import Mapping
import dataclasses
import json
import math
import os
import threading
import time
from typing import Any

from absl import logging
from etils import epath
import jax
import numpy as np

from rl_jax.checks import checked, chosen, ranged
from rl_jax.records.checkpoints import files, leaves, versions
from rl_jax.records.checkpoints.failure import CheckpointError, FailedSave
from rl_jax.records.checkpoints.leaves import abstract_tree
from rl_jax.runtime import processes, watchdog
from rl_jax.runtime.repeated_warnings import RepeatedWarnings
from rl_jax.runtime.writer import Writer, sole_writer

__all__ = ['CheckpointError', 'Checkpointer', 'Restored', 'abstract_tree']

_HOST, _ARRAYS = 'host.json', 'arrays'
_ERRORS_OF_A_SAVE = 10  # at most: of arrays and of two files beside them
_SMALL = 1 << 20  # elements of an array that check_newest reads


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class CheckpointConfig:
  """When to save, and what to do when saving fails.

  keep_best: checkpoints with the largest best_metric are kept besides the last
    ones, and saved also where an evaluation falls between two of `every`.
  weights_every: iterations between saves of the trained weights only, all of
    which are kept; 0: none.
  """

  every: int = ranged(10, 1)
  weights_every: int = ranged(0, 0)
  keep_last: int = ranged(2, 1)
  keep_best: int = ranged(1, 0)
  best_metric: str = 'evaluation/pass_at_1'
  on_save_error: str = chosen('stop', ('stop', 'warn'))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Restored:
  """The result of `Checkpointer.restore`."""

  step: int
  tree: Any
  host_state: dict[str, Any]
  metrics: dict[str, float]


class Checkpointer:
  """Saves asynchronously; restores the newest step that verifies.

  Arrays are copied to the host before `save` returns, so their buffers may be
  donated at once. Files are written and committed by a background thread; at
  most one save is in flight. Peak disk use is one step more than is kept.

  directory: created at the first save.
  keep_last: newest steps to keep, at least 1; 2 or more gives a fallback.
  keep_best: steps to keep besides, with the largest `best_metric`.
  best_metric: a name in the `metrics` given to `save`.
  on_save_error: 'stop' raises CheckpointError at the next call; 'warn' logs.
    Either way the steps committed before stay valid.
  writer: the right to write there, by default not shared with anyone.
  """

  def __init__(
    self,
    directory: str | os.PathLike[str],
    *,
    keep_last: int = 3,
    keep_best: int = 1,
    best_metric: str = 'evaluation/pass_at_1',
    on_save_error: str = 'stop',
    writer: Writer | None = None,
  ):
    if keep_last < 1 or keep_best < 0:
      raise ValueError(
        f'keep_last = {keep_last} must be >= 1, keep_best = {keep_best} >= 0'
      )
    self.directory = epath.Path(directory)
    if files.is_local(directory):
      self.directory = epath.Path(os.path.abspath(directory))
    self._keep = (keep_last, keep_best, best_metric)
    self._writer = writer or sole_writer()
    self._failed = FailedSave(on_save_error, self._writer.check)
    ocp = leaves.orbax()
    self._orbax = ocp.AsyncCheckpointer(ocp.PyTreeCheckpointHandler())
    self._thread: threading.Thread | None = None
    self._warnings = RepeatedWarnings()
    self._known_good: set[int] = set()  # written or verified by this object

  # Writing.

  def save(
    self,
    step: int,
    tree: Any,
    host_state: dict[str, Any] | None = None,
    metrics: Mapping[str, float] | None = None,
  ) -> None:
    """Starts to save `tree` (jax and numpy arrays) and JSON-able host state.

    Waits for the save before it. A step that this object has already saved or
    restored is not written again. After the commit, later steps are deleted:
    they belong to a run that was abandoned.

    Raises:
      ValueError: the path has characters that Orbax takes for a pattern.
      CheckpointError: an earlier save failed and on_save_error is 'stop'.
      TypeError: a leaf is not an array, or host_state does not survive JSON.
    """
    files.check_directory(self.directory)
    self.wait()
    if step in self._known_good:
      return
    arrays, described = leaves.flatten_for_saving(tree)
    files.check_json(host_state or {}, 'host_state')
    # Not in the thread: the caller may change host_state after save returns.
    host_text = json.dumps(host_state or {})
    manifest = {
      'format': files.FORMAT,
      'step': step,
      'metrics': {k: float(v) for k, v in (metrics or {}).items()},
      'arrays': described,
      'versions': versions.current(),
      'saved_unix_seconds': time.time(),
    }

    def prepare():
      files.delete(self._path(step), self._writer)  # damaged or abandoned
      temporary = self._temporary(step)
      if temporary.exists():  # of a save of this object that failed
        temporary.rmtree()
      temporary.mkdir(parents=True)
      return temporary.name

    try:
      path = self.directory / processes.on_main(prepare)
      # Transfers are intended here, whatever guard is set.
      with jax.transfer_guard('allow'), watchdog.checkpointing():
        arguments = leaves.orbax().args.PyTreeSave(arrays)
        self._orbax.save(path / _ARRAYS, args=arguments, force=True)
    except Exception as error:  # Out of space shows as several types.
      self._record_failure(step, error)
      self._failed.report(self.directory, self.steps)
      return
    self._thread = threading.Thread(
      target=self._finish, args=(step, host_text, manifest), name='commit'
    )
    self._thread.start()

  def _finish(self, step: int, host_text: str, manifest: Any) -> None:
    """Background: waits for Orbax, writes the manifest last, prunes."""
    path = self._temporary(step)
    try:
      self._orbax.wait_until_finished()
      if processes.is_main():
        (path / _HOST).write_text(host_text)
        files.commit(path, manifest)
        self._writer.check()
        if path != self._path(step):
          path.rename(self._path(step))
    except BaseException as error:
      self._record_failure(step, error)
      return
    self._known_good.add(step)
    try:
      if processes.is_main():
        self._prune(step)
    except Exception as error:  # also that another run has taken over
      self._warnings.warn('could not delete old checkpoints: %s', error)

  def _record_failure(self, step: int, error: BaseException) -> None:
    self._failed.record(step, error)
    self._forget_errors()
    try:
      if processes.is_main():  # A partial checkpoint only takes up space.
        self._temporary(step).rmtree()
    except OSError:
      pass

  def _forget_errors(self) -> None:
    """Orbax raises every error of a failed save in a later call."""
    for _ in range(_ERRORS_OF_A_SAVE):
      try:
        return self._orbax.wait_until_finished()
      except Exception as error:
        logging.info('also of the save that failed: %s', error)

  def _prune(self, newest: int) -> None:
    """Keeps the last and the best up to `newest`; drops all other steps."""
    keep = files.kept(self.directory, newest, *self._keep)
    for step in files.all_steps(self.directory):
      if step not in keep:
        files.delete(self._path(step), self._writer)
        self._known_good.discard(step)

  def wait(self) -> None:
    """Returns when nothing is in flight on any process; reports a failed save.

    All processes must call it.
    """
    if self._join():
      self._known_good.discard(self._failed.share())
    self._failed.report(self.directory, self.steps)

  def _join(self) -> bool:
    """Waits for this process only; whether there was something in flight."""
    if self._thread is None:
      return False
    with watchdog.checkpointing():
      self._thread.join()
    self._thread = None
    return True

  def close(self) -> None:
    """Waits for this process and frees the threads of Orbax."""
    try:
      self._join()
      self._failed.report(self.directory, self.steps)
    finally:
      self._orbax.close()

  # Reading.

  def steps(self) -> list[int]:
    """The committed steps, oldest first; their files may still be damaged."""
    return files.committed_steps(self.directory)

  def best_step(self) -> int | None:
    """The committed step with the largest `best_metric`, newest on ties."""
    steps = files.best_first(self.directory, self.steps(), self._keep[2])
    return steps[0] if steps else None

  def latest(self) -> int | None:
    """The newest step that verifies; warns about each newer one.

    Raises:
      CheckpointError: there are committed steps and all are damaged.
    """
    self.wait()
    reasons = []
    for step in reversed(files.all_steps(self.directory)):
      reason = files.verify(self._path(step))
      if not reason:
        self._known_good.add(step)
        return step
      logging.warning('checkpoint %d is not used: %s', step, reason)
      if (self._path(step) / files.COMMIT).exists():
        reasons.append(f'step {step}: {reason}')
    if reasons:
      raise CheckpointError(
        f'no checkpoint in {self.directory} is valid: ' + '; '.join(reasons)
      )
    return None

  def restore(
    self, abstract: Any, step: int | None = None, *, partial: bool = False
  ) -> Restored | None:
    """Restores onto a tree of ShapeDtypeStructs with shardings; bit-exact.

    Leaves that are numpy arrays are restored as numpy arrays. The mesh may
    differ from the one that saved.

    Args:
      abstract: see `abstract_tree`.
      step: a certain step; by default the newest that verifies.
      partial: the checkpoint may hold more arrays than `abstract`.

    Returns:
      None if nothing was ever committed and no step was asked for.

    Raises:
      ValueError: names, shapes or dtypes differ from the checkpoint's, or the
      step asked for has no checkpoint. CheckpointError: nothing valid is left,
      or the step asked for is damaged.
    """
    self.wait()
    step = processes.on_main(lambda: self._usable(step))
    if step is None:
      return None
    self._known_good.add(step)
    manifest, _ = files.read_manifest(self._path(step))
    assert manifest is not None, 'the step was verified'
    named, treedef = leaves.names(abstract)
    versions.warn_if_changed(step, manifest.get('versions', {}))
    leaves.check_structure(named, manifest['arrays'], step, partial)
    values = leaves.read(
      self._orbax, self._path(step) / _ARRAYS, named, manifest['arrays']
    )
    return Restored(
      step=step,
      tree=treedef.unflatten(values),
      host_state=self.host_state(step),
      metrics=manifest['metrics'],
    )

  def set_newer_aside(self, step: int) -> None:
    """Renames the committed steps after `step`: they cannot be used now.

    This is for a run that continues from an earlier step. If they could be used
    again later, they would continue files that have other lines by then.
    """
    for newer in self.steps():
      if newer > step:
        try:
          kept = self._writer.set_aside(self._path(newer))
        except OSError as error:
          logging.warning('checkpoint %d stays in place: %s', newer, error)
        else:
          logging.warning(
            'the run continues after step %d: checkpoint %d is kept as %s',
            step,
            newer,
            os.path.basename(kept),
          )

  def _usable(self, step: int | None) -> int | None:
    if step is None:
      return self.latest()
    if step not in self.steps():
      known = ', '.join(map(str, self.steps())) or 'none'
      raise ValueError(
        f'there is no checkpoint {step} in {self.directory}; there are: {known}'
      )
    if reason := files.verify(self._path(step)):
      raise CheckpointError(f'checkpoint {step} cannot be used: {reason}')
    return step

  def check_newest(self) -> None:
    """Reads the newest committed step back, for the end of a run.

    Every file is compared with its checksum; small arrays are read as a restore
    reads them. All processes must call it.

    Raises:
      CheckpointError: it cannot be restored and on_save_error is 'stop'.
    """
    self.wait()
    step = processes.on_main(lambda: max(self.steps(), default=None))
    if step is None:
      return
    try:
      reason = processes.on_main(lambda: files.verify(self._path(step)))
      if reason:
        raise CheckpointError(reason)
      self.arrays(step, max_size=_SMALL)
    except (CheckpointError, OSError, ValueError) as error:
      self._known_good.discard(step)
      self._failed.record(step, error)
    self._failed.report(self.directory, self.steps)

  def host_state(self, step: int) -> dict[str, Any]:
    """The host state of a committed step, without reading its arrays."""
    return json.loads((self._path(step) / _HOST).read_text())

  def oldest_host_state(self) -> dict[str, Any] | None:
    """The host state of the oldest of the last `keep_last` committed steps.

    None if there is none. A run never continues from an earlier step, unless
    all of these are damaged.
    """
    try:
      steps = self.steps()[-self._keep[0] :]
      return self.host_state(steps[0]) if steps else None
    except (OSError, ValueError):  # deleted in between, or damaged
      return None

  def arrays(
    self, step: int, max_size: float = math.inf
  ) -> dict[str, np.ndarray]:
    """Arrays of at most max_size elements by name, as numpy; keys as uint32."""
    manifest, reason = files.read_manifest(self._path(step))
    if manifest is None:
      raise CheckpointError(f'checkpoint {step} cannot be used: {reason}')
    named = {
      name: np.empty(0)
      for name, array in manifest['arrays'].items()
      if math.prod(array['shape']) <= max_size
    }
    path = self._path(step) / _ARRAYS
    values = leaves.read(self._orbax, path, named, manifest['arrays'])
    return dict(zip(named, values, strict=True))

  def _path(self, step: int) -> epath.Path:
    return files.step_path(self.directory, step)

  def _temporary(self, step: int) -> epath.Path:
    """The path where a step is written before it has its name."""
    path = self._path(step)
    return (
      epath.Path(self._writer.temporary(path)) if files.is_local(path) else path
    )
