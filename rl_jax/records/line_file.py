"""A file of lines that may lose some to a full disk, but never ends a run."""

from collections.abc import Sequence
import contextlib
import os
from typing import Any

from absl import logging
from etils import epath

from rl_jax.runtime.repeated_warnings import RepeatedWarnings
from rl_jax.runtime.writer import Writer


class LineFile:
  """Appends whole lines; those that cannot be written are lost and counted.

  What a failed write has left of a line is removed before the next one. The
  right of the writer is checked before each change, after the file was opened:
  another process that has taken over has replaced the file by then.

  Raises:
    OSError: the file cannot be opened, only when it is constructed.
  """

  def __init__(self, path: epath.Path, writer: Writer):
    self._path, self._writer = path, writer
    self._file: Any = path.open('ab')
    self._size = self._file.seek(0, os.SEEK_END)
    self._lost = 0
    self._warnings = RepeatedWarnings()

  def append(self, lines: Sequence[str]) -> None:
    """Writes and flushes the lines, or warns."""
    data = ''.join(line + '\n' for line in lines).encode()
    try:
      if self._file is None:
        self._reopen()
      self._writer.check()
      self._file.write(data)
      self._file.flush()
      self._size += len(data)
    except OSError as error:
      self._drop()
      self._lost += len(lines)
      self._warnings.warn(
        '%s cannot be written (%s): %d lines are lost so far, the run goes on',
        *(self._path, error, self._lost),
      )

  def sync(self) -> int:
    """Bytes of whole lines; they are on the disk, unless it fails."""
    if self._file is not None and '://' not in os.fspath(self._path):
      try:
        os.fsync(self._file.fileno())
      except OSError as error:
        logging.warning('%s cannot be synchronised: %s', self._path, error)
    return self._size

  def cut(self, size: int) -> None:
    """Removes what lies behind `size` bytes; warns if there are fewer."""
    if self._size < size:
      logging.warning(
        '%s has %d bytes, but the checkpoint counted %d: lines were lost',
        *(self._path, self._size, size),
      )
    self._size = min(self._size, size)
    self._drop()
    self._reopen()

  def set_aside(self) -> epath.Path | None:
    """Begins an empty file; returns the new name of the old one, if any.

    NAME becomes NAME.1, or the next number that is free.
    """
    if not self._size:
      return None
    self._drop()
    kept = epath.Path(self._writer.set_aside(self._path))
    self._size = 0
    self._reopen()
    return kept

  def close(self) -> None:
    """Closes the file."""
    self._drop()
    if self._lost:
      logging.warning('%s lacks %d lines', self._path, self._lost)

  def _drop(self):
    file, self._file = self._file, None
    with contextlib.suppress(OSError):  # of what is still buffered
      if file is not None:
        file.close()

  def _reopen(self):
    file = self._path.open('ab')
    try:
      self._writer.check()
      file.truncate(self._size)
      file.seek(0, os.SEEK_END)
    except BaseException:
      file.close()
      raise
    self._file = file
