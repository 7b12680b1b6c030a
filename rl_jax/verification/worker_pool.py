"""The base of pools of worker processes: counts, processes and their end."""

from typing import Self

from rl_jax.verification.processes import Crew
from rl_jax.verification.tally import Tally


class WorkerPool:
  """Base of pools; a context manager that ends the workers.

  crew: the workers, or None where calls are made in this process.
  """

  def __init__(self, tally: Tally, crew: Crew | None):
    self._tally, self._crew = tally, crew

  def __enter__(self) -> Self:
    return self

  def __exit__(self, *_) -> None:
    self.close()

  def counts(self) -> dict[str, int]:
    """Calls ever made, by kind; stray: and replies after a call's end."""
    return self._tally.counts()

  def worker_pids(self) -> list[int]:
    """Process ids of the live workers."""
    return [] if self._crew is None else self._crew.pids()

  def close(self) -> None:
    """Ends all processes; a second call does nothing."""
    if self._crew is not None:
      self._crew.close()
