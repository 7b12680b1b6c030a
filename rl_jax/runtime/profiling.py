"""Traces iterations for TensorBoard or Perfetto, and counts compilations."""

from collections.abc import Callable
import dataclasses
import re
from typing import Any

from absl import logging
import jax

from rl_jax.runtime.compilation import COMPILED


class _Compilations:
  """Counts the compilation events of JAX since this module was imported."""

  def __init__(self):
    self.count = 0
    jax.monitoring.register_event_duration_secs_listener(self._event)

  def _event(self, event: str, duration_secs: float, **kwargs) -> None:
    del duration_secs, kwargs
    self.count += event == COMPILED


_COMPILATIONS = _Compilations()


def compilations() -> int:
  """Programs that this process compiled, or read from a cache, so far."""
  return _COMPILATIONS.count


@dataclasses.dataclass(frozen=True)
class Window:
  """Iterations first to last, counted from 1 as the rows of metrics are."""

  first: int
  last: int


def parse_window(
  text: str, done: int, total: int, flag: str = 'profile'
) -> Window:
  """The window that 'FIRST:LAST' means, both included.

  Args:
    text: for example '10:13'.
    done: iterations that are finished and cannot be traced any more.
    total: iterations of the whole run.
    flag: for messages.

  Raises ValueError naming the text and what is allowed.
  """
  match = re.fullmatch(r'(\d+):(\d+)', text)
  if match is None:
    raise ValueError(f'--{flag}={text}: expected FIRST:LAST, for example 10:13')
  window = Window(*map(int, match.groups()))
  if not done < window.first <= window.last <= total:
    raise ValueError(
      f'--{flag}={text}: FIRST <= LAST must be iterations after the {done} '
      f'that are done and up to {total}'
    )
  return window


class Profiler:
  """Traces the iterations of a window; without one it only runs them."""

  def __init__(self, window: Window | None = None, directory: str = ''):
    self._window, self._directory = window, directory
    self._tracing = False

  def run(self, iteration: Callable[[], Any], number: int) -> Any:
    """Returns iteration(); starts the trace before it and stops it after it.

    The trace ends when the results are computed, not when they are dispatched.
    Its beginning may include work that was dispatched earlier.
    """
    if self._window is None:
      return iteration()
    if number == self._window.first:
      jax.profiler.start_trace(self._directory)
      self._tracing = True
    results = iteration()
    if number == self._window.last:
      jax.block_until_ready(results)
      self.close()
    return results

  def close(self) -> None:
    """Writes a trace that has started, also of a run that ends within it."""
    if self._tracing:
      self._tracing = False
      jax.profiler.stop_trace()
      logging.info('trace of the profiler in %s', self._directory)
