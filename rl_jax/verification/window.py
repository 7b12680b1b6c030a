"""The number of calls that run at once where nobody has said."""

import sys

from rl_jax.verification import child_processes
from rl_jax.verification.processes import Worker, cores

_SECONDS = 0.005  # between two looks


class Window:
  """Calls that may run at once: more as long as they leave processors idle.

  A call that waits for a network or sleeps costs no processor, so that `most`
  of them may run; those that compute would take each other's time. size: begins
  with the number of processors; it doubles where calls wait and fewer processes
  compute than there are processors, and is halved where more than twice as many
  do. Where the system does not say what computes it is four times the
  processors.
  """

  seconds = _SECONDS

  def __init__(self, most: int):
    self._most, self._looked = most, 0.0
    self._processors = cores()
    self.size = min(most, self._processors * (1 if _knows() else 4))

  def look(self, busy: list[Worker], now: float) -> None:
    """Changes the size, at most once in `seconds`; calls wait."""
    if not _knows() or now - self._looked < _SECONDS:
      return
    self._looked = now
    if any(worker.connection.poll() for worker in busy):
      return  # it has answered, and is not seen to compute
    computing = sum(child_processes.computes(worker.pid) for worker in busy)
    if computing < self._processors:
      self.size = min(self._most, 2 * self.size)
    elif computing > 2 * self._processors:
      self.size = max(self._processors, self.size // 2)


def _knows():
  return sys.platform == 'linux'
