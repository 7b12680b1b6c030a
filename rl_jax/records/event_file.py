"""A TensorBoard event file that the calling thread writes.

The writers of tensorboardX have a thread that ends without a word when the disk
is full or the clock is set back; then their queue fills and the caller waits
for ever.
"""

from collections.abc import Mapping
import contextlib
import itertools
import os
import socket
import time
from typing import Any

from rl_jax.optional import require

_LARGEST = 3.4e38  # of float32
_serial = itertools.count()


def _module(name: str) -> Any:
  return require(f'tensorboardX.{name}', 'a TensorBoard file')


class EventFile:
  """Appends scalars; every method may raise OSError, after which it is torn.

  purge_step: TensorBoard drops the points of earlier files from there on.
  """

  def __init__(
    self, directory: str | os.PathLike[str], purge_step: int | None = None
  ):
    record_writer = _module('record_writer')
    self._event_pb2 = event_pb2 = _module('proto.event_pb2')
    self._summary = _module('proto.summary_pb2').Summary
    directory = os.fspath(directory)
    record_writer.directory_check(directory)
    # TensorBoard reads files in the order of their names.
    name = (
      f'events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}'
      f'.{os.getpid()}.{next(_serial):06d}'
    )
    path = os.path.join(directory, name)
    self._records = record_writer.RecordWriter(path)
    try:
      self._write(event_pb2.Event(file_version='brain.Event:2'))
      if purge_step is not None:
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._write(event_pb2.Event(step=purge_step, session_log=start))
      self._records.flush()
    except OSError:
      with contextlib.suppress(OSError):  # of what is still buffered
        self.close()
      with contextlib.suppress(OSError):
        os.unlink(path)
      raise

  def scalars(self, step: int, values: Mapping[str, Any]) -> None:
    """Writes the finite numbers of a row; TensorBoard can plot no others."""
    points = [
      self._summary.Value(tag=name, simple_value=value)
      for name, value in values.items()
      if isinstance(value, (int, float)) and abs(value) <= _LARGEST
    ]
    summary = self._summary(value=points)
    self._write(self._event_pb2.Event(step=step, summary=summary))
    self._records.flush()

  def close(self) -> None:
    """Closes the file."""
    self._records.close()

  def _write(self, event):
    event.wall_time = time.time()
    self._records.write(event.SerializeToString())
