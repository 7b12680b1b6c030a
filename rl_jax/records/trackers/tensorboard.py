"""TensorBoard files in the work directory."""

from collections.abc import Mapping
import contextlib
import os
from typing import Any

from rl_jax.records.event_file import EventFile


class TensorBoard:
  """Writes `tensorboard/`; after an error the next row begins a new file."""

  name = 'TensorBoard files'

  def __init__(self, workdir: str | os.PathLike[str]):
    self._directory = os.path.join(os.fspath(workdir), 'tensorboard')
    self._events: EventFile | None = None
    self._purge_step: int | None = None

  def start(self, next_step: int | None) -> None:
    """TensorBoard then hides the points that a resumed run repeats."""
    self._purge_step = next_step

  def log(self, row: Mapping[str, Any]) -> None:
    """Writes the numbers of a row."""
    values = {name: x for name, x in row.items() if name != 'step'}
    try:
      if self._events is None:
        self._events = EventFile(self._directory, self._purge_step)
      self._events.scalars(row['step'], values)
    except OSError:
      with contextlib.suppress(OSError):  # of what is still buffered
        self.close()
      self._purge_step = row['step']
      raise

  def close(self) -> None:
    """Closes the file."""
    events, self._events = self._events, None
    if events is not None:
      events.close()
