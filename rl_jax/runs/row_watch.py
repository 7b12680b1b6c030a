"""Acts on a row of metrics once the host has read it."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rl_jax.config import ExperimentConfig
from rl_jax.records.metrics import save_arrays
from rl_jax.runs import guards
from rl_jax.runs.callbacks import Callbacks
from rl_jax.runs.counters import Counters
from rl_jax.runs.stopping import EarlyStopping
from rl_jax.runtime.repeated_warnings import RepeatedWarnings
from rl_jax.runtime.stateful import Stateful
from rl_jax.runtime.writer import Writer
from rl_jax.types import Trajectories


class RowWatch(Stateful):
  """Guards, batches of skipped updates, early stopping and callbacks.

  unjudged: why no sample of the last iteration was judged, or ''.
  """

  name: ClassVar[str] = 'watch'

  def __init__(
    self,
    config: ExperimentConfig,
    workdir: str,
    callbacks: Callbacks,
    writer: Writer,
  ):
    self._guards, self._workdir = config.guards, workdir
    self._callbacks, self._writer = callbacks, writer
    self._warnings = RepeatedWarnings()
    # By iteration: of the last two, as metrics are read one iteration late.
    self._batches: dict[int, Trajectories] = {}
    self.stopping = EarlyStopping(config.stopping)
    self.asked_to_end = False  # by a callback
    self.unjudged = ''
    self._unjudged_in_a_row = 0  # iterations of this session

  def keep_batch(self, iteration: int, traj: Trajectories) -> None:
    """Keeps the batch until its row has been read."""
    self._batches[iteration] = traj
    self._batches.pop(iteration - 2, None)

  def see_samples(self, errors: Sequence[str | None]) -> None:
    """Ends the run if no sample can be judged; errors: of an iteration."""
    in_a_row = guards.check_judged(errors, self._unjudged_in_a_row)
    self._unjudged_in_a_row = in_a_row
    self.unjudged = guards.why_unjudged(errors)

  def see(self, row: dict[str, Any], counters: Counters) -> dict[str, Any]:
    """Ends the run if a guard's limit is reached; else returns the row."""
    skipped = row['train/skipped'] > 0
    if skipped:
      path = f'{self._workdir}/skipped_{row["step"]}.npz'
      save_arrays(path, self._batches[row['step']], self._writer)
      text = 'non-finite loss or gradient: its batch is in %s'
      self._warnings.warn(text, path)
    in_a_row = counters.note_skipped(skipped)
    guards.check(self._guards, row, in_a_row, self._workdir)
    self.stopping.see(row)
    if self._callbacks.call('on_iteration', row['step'], row):
      self.asked_to_end = True
    return row

  def has_ended(self, iteration: int) -> bool:
    """Returns whether the run ends with this iteration, before its last one."""
    return self.asked_to_end or self.stopping.due(iteration)

  def host(self) -> dict[str, Any]:
    """See Stateful."""
    return {'stopping': self.stopping.state(), 'unjudged': self.unjudged}

  def restore(self, arrays: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """See Stateful."""
    del arrays
    self.unjudged = host.get('unjudged', '')
    if 'stopping' in host:
      self.stopping.restore(host['stopping'])
