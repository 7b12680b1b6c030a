"""Standard output and error that may be closed, full or cut off."""

import os
import sys
from typing import Any


class Tolerant:
  """A text stream whose failures to write are ignored; None writes nothing."""

  def __init__(self, stream: Any):
    self._stream = stream

  def write(self, text: str) -> int:
    """Writes what can be written; returns the length of the text."""
    self._try('write', text)
    return len(text)

  def flush(self) -> None:
    """Flushes the stream; failures are ignored."""
    self._try('flush')

  def isatty(self) -> bool:
    """False also if the stream cannot answer."""
    return bool(self._try('isatty'))

  def __getattr__(self, name: str) -> Any:
    return getattr(self._stream, name)

  def _try(self, name, *args):
    try:
      return getattr(self._stream, name)(*args) if self._stream else None
    except (OSError, ValueError):  # ValueError: of a closed file, or encoding
      return None


def tolerate_failures() -> None:
  """Makes failing outputs harmless to this process; idempotent.

  A descriptor 0, 1 or 2 that is closed is opened to nowhere: else the next file
  that is opened would get its number, and messages of libraries with it.
  """
  while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
    os.set_inheritable(number, True)
  os.close(number)
  for name in ('stdout', 'stderr'):
    stream = getattr(sys, name)
    if not isinstance(stream, Tolerant):
      setattr(sys, name, Tolerant(stream))
