"""Trackers that may fail or stall, and a run that does not notice."""

from collections.abc import Mapping
import queue
import threading
import time
from typing import Any

from absl import logging

from rl_jax.runtime.repeated_warnings import RepeatedWarnings

_WAITING = 1000  # rows
_CLOSE_SECONDS = 60.0
_RETRY_SECONDS = 60.0


class Guarded:
  """A tracker whose errors cost rows, which are counted in warnings."""

  def __init__(self, tracker: Any):
    self._tracker = tracker
    self._warnings = RepeatedWarnings()
    self._next_step: int | None = None
    self._started = False
    self._retry_at = 0.0
    self.lost = 0

  def start(self, next_step: int | None) -> None:
    """The first step that will be logged; earlier sessions may have it too."""
    self._next_step, self._started = next_step, False

  def log(self, row: Mapping[str, Any]) -> None:
    """Logs a row, or warns; what could not start is tried again later."""
    try:
      if not self._started:
        if time.monotonic() < self._retry_at:
          self.lost += 1
          return
        self._retry_at = time.monotonic() + _RETRY_SECONDS
        self._tracker.start(self._next_step)
        self._started = True
      self._tracker.log(row)
    except Exception as error:  # of whatever class its library raises
      self.lose(f'{type(error).__name__}: {error}')

  def lose(self, reason: str) -> None:
    """Counts one row that the tracker does not have."""
    self.lost += 1
    self._warnings.warn(
      '%s cannot be written (%s): %d rows are lost so far, the run continues',
      self._tracker.name,
      reason,
      self.lost,
    )

  def close(self) -> None:
    """Ends the tracker; what it raises is logged."""
    try:
      self._tracker.close()
    except Exception as error:
      logging.warning('%s: %s', self._tracker.name, error)
    if self.lost:
      logging.warning('%s lacks %d rows', self._tracker.name, self.lost)


class InBackground:
  """The same for a service that may stall: a thread of its own waits for it.

  Of more than 1,000 rows that wait the newest are lost. `close` waits for a
  minute at most.
  """

  def __init__(self, tracker: Any):
    self._guarded, self._name = Guarded(tracker), tracker.name
    self._rows: queue.Queue[Any] = queue.Queue(_WAITING)
    self._thread: threading.Thread | None = None

  def start(self, next_step: int | None) -> None:
    """See Guarded.start."""
    self._guarded.start(next_step)
    if self._thread is None:
      self._thread = threading.Thread(
        target=self._work, name=self._name, daemon=True
      )
      self._thread.start()

  def log(self, row: Mapping[str, Any]) -> None:
    """Returns at once."""
    try:
      self._rows.put_nowait(dict(row))
    except queue.Full:
      self._guarded.lose('it is too slow')

  def close(self, seconds: float = _CLOSE_SECONDS) -> None:
    """Sends what waits, for a limited time."""
    if self._thread is None:
      return
    end = time.monotonic() + seconds
    try:
      self._rows.put(None, timeout=seconds)
      self._thread.join(max(0.0, end - time.monotonic()))
    except queue.Full:
      pass
    if self._thread.is_alive():
      logging.warning(
        '%s did not end within %.0f s: its last rows may be missing',
        self._name,
        seconds,
      )

  def _work(self):
    while (row := self._rows.get()) is not None:
      self._guarded.log(row)
    self._guarded.close()
