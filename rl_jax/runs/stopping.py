"""Early stopping by a metric, and a limit of wall time."""

import math
import time
from typing import Any

from absl import logging

from rl_jax import checks, overrides
from rl_jax.config import StoppingConfig


class EarlyStopping:
  """Ends a run when a metric no longer improves; exact when it is resumed.

  Decided on the row of an iteration, which is read during the next one, it
  always ends the run after that next one: so an interruption in between, at
  which the row is read earlier, does not change the last iteration.
  """

  def __init__(self, config: StoppingConfig):
    self._config = config
    names = ('metric', 'mode', 'patience', 'min_delta', 'target')
    self._settings = checks.values(config, names)
    self.best: float | None = None
    self.waited = 0  # rows with the metric since then
    self.last: int | None = None  # the last iteration of the run

  def see(self, row: dict[str, Any]) -> None:
    """Reads one row.

    Raises ValueError naming the nearest if it should have the metric.
    """
    config = self._config
    if config.metric is None or self.last is not None:
      return
    if config.metric not in row:
      if self.best is None and not self.waited:  # else some rows have it
        _check_name(config.metric, row)
      return
    sign = 1 if config.mode == 'max' else -1
    value = float(row[config.metric])
    if config.target is not None and sign * (value - config.target) >= 0:
      self.last = row['step'] + 1
      logging.info(
        'stopping after iteration %d: %s = %s has reached %s (stopping.target)',
        self.last,
        config.metric,
        value,
        config.target,
      )
      return
    gain = math.inf if self.best is None else sign * (value - self.best)
    if math.isfinite(value) and gain > config.min_delta:
      self.best, self.waited = value, 0
      return
    self.waited += 1
    if config.patience is not None and self.waited >= config.patience:
      self.last = row['step'] + 1
      logging.warning(
        'stopping after iteration %d: %s has not risen above %s by more than '
        '%s in %d rows (stopping.patience)'
        if sign > 0
        else 'stopping after iteration %d: %s has not fallen below %s by more '
        'than %s in %d rows (stopping.patience)',
        self.last,
        config.metric,
        self.best,
        config.min_delta,
        self.waited,
      )

  def due(self, iteration: int) -> bool:
    """Returns whether the run has ended with this iteration."""
    return self.last is not None and iteration >= self.last

  def state(self) -> dict[str, Any]:
    """The state for a checkpoint."""
    return {
      'settings': self._settings,
      'best': self.best,
      'waited': self.waited,
      'last': self.last,
    }

  def restore(self, state: dict[str, Any]) -> None:
    """Continues; with other settings a run that had ended may continue."""
    settings = {'target': None, **state['settings']}  # older runs
    if any(settings[n] != self._settings[n] for n in ('metric', 'mode')):
      return
    self.best, self.waited = state['best'], state['waited']
    if settings == self._settings:
      self.last = state['last']


def _check_name(metric, row):
  """Rows of evaluations have their metrics only where there was one."""
  if metric == 'policy/entropy_change':  # the first row has none before it
    return
  kind = metric.partition('/')[0]
  if kind != 'evaluation' or any(x.startswith('evaluation/') for x in row):
    if 'train/loss' in row or kind == 'evaluation':
      text = overrides.unknown_name('metric', metric, row)
      raise ValueError(f'stopping.metric: {text}')


class SessionClock:
  """A clock that ends a session after its limit of seconds (None: no limit)."""

  def __init__(self, seconds: float | None):
    self._seconds = seconds
    self._started = time.monotonic()

  def is_over(self) -> bool:
    """True from the limit on."""
    if self._seconds is None:
      return False
    return time.monotonic() - self._started >= self._seconds
