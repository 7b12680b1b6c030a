"""A file of lines that may lose some to a full disk, but never ends a run.

Lines are JSON objects that begin with the step to which they belong.
"""

from collections.abc import Sequence
import contextlib
import json
import os
import re
from typing import Any

from absl import logging
from etils import epath

from rl_jax.runtime.repeated_warnings import RepeatedWarnings
from rl_jax.runtime.writer import Writer

_CHUNK = 1 << 16  # bytes
_STEP = re.compile(rb'\{"step": ([0-9]+)[,}]')


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
      file = self._reopen() if self._file is None else self._file
      self._writer.check()
      file.write(data)
      file.flush()
      self._size += len(data)
    except OSError as error:
      self._drop()
      self._lost += len(lines)
      self._warnings.warn(
        '%s cannot be written (%s): %d lines are lost so far, the run '
        'continues',
        self._path,
        error,
        self._lost,
      )

  def sync(self) -> int:
    """Bytes of whole lines; they are on the disk, unless it fails."""
    if self._file is not None and '://' not in os.fspath(self._path):
      try:
        os.fsync(self._file.fileno())
      except OSError as error:
        logging.warning('%s cannot be synchronised: %s', self._path, error)
    return self._size

  def cut(self, size: int, step: int | None = None) -> None:
    """Removes what comes after `size` bytes, where the lines of a step end.

    If they do not end there, the file has lost lines, or it was written after
    another checkpoint. Then it is set aside, with a warning, and its whole
    lines up to this step are copied.

    Args:
      size: bytes that a checkpoint counted.
      step: of the checkpoint; None if it is not known.
    """
    if why := self._misfit(size, step):
      self._copy_up_to(step, why)
      return
    self._drop()
    self._size = size
    self._reopen()

  def _misfit(self, size: int, step: int | None) -> str:
    """Why the lines of a step do not end after so many bytes; '' if they do."""
    if self._size < size:
      return f'has {self._size} bytes, but the checkpoint counted {size}'
    with self._path.open('rb') as file:
      line = _last_line(file, size)
      following = file.readline()
    if line and not line.endswith(b'\n'):
      return f'has no line that ends at byte {size}, as the checkpoint counted'
    if step is not None and (
      _step_of(line, step) > step or _step_of(following, step + 1) <= step
    ):
      return f'has other lines around byte {size} than the checkpoint counted'
    return ''

  def _copy_up_to(self, step: int | None, why: str) -> None:
    """Begins a file with the lines of this one that are whole and in order."""
    kept, count, newest = self.set_aside(), 0, 0
    if kept is not None:
      with kept.open('rb') as file:
        for line in file:
          number = _step_of(line, -1)
          if number < newest or (step is not None and number > step):
            continue
          try:
            json.loads(line)
          except (ValueError, RecursionError):  # it was torn
            continue
          self.append([line.rstrip(b'\n').decode()])
          count, newest = count + 1, number
    logging.warning(
      '%s %s: lines were lost, or are those of another checkpoint. %d lines '
      'are copied, and %s',
      self._path,
      why,
      count,
      f'the file is kept as {kept.name}' if kept else 'the file was empty',
    )

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

  def _reopen(self) -> Any:
    """Opens the file at the end of its whole lines."""
    file = self._path.open('ab')
    try:
      self._writer.check()
      file.truncate(self._size)
      file.seek(0, os.SEEK_END)
    except BaseException:
      file.close()
      raise
    self._file = file
    return file


def _step_of(line: bytes, default: int) -> int:
  """The step that a line begins with."""
  found = _STEP.match(line)
  return int(found[1]) if found else default


def _last_line(file: Any, size: int) -> bytes:
  """The line before `size` bytes, and the position there."""
  line, start = b'', size
  while start and b'\n' not in line[:-1]:
    start = max(0, start - _CHUNK)
    file.seek(start)
    line = file.read(size - start)
  file.seek(size)
  return line[:-1].rpartition(b'\n')[2] + line[-1:]
