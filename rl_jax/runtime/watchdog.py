"""Ends a process that has not exchanged anything with the others for too long.

A process that hangs still answers heartbeats, so the others would wait for it
for ever. Each process measures its own time without an exchange: if all wait
for one, all end, and that one prints its stack.
"""

import contextlib
import faulthandler
import os
import sys
import threading
import time

EXIT_CODE = 75  # EX_TEMPFAIL: the newest checkpoint is valid, run it again
_POLL_SECONDS = 0.2
_BUSY = 'has been busy or stuck'

_last = time.monotonic()
_doing = _BUSY


def start(stall_seconds: float, name: str) -> None:
  """Watches this process from now on; call it once."""
  alive()
  thread = threading.Thread(
    target=_watch, args=(stall_seconds, name), name='watchdog', daemon=True
  )
  thread.start()


def alive() -> None:
  """Resets the time."""
  global _last
  _last = time.monotonic()


@contextlib.contextmanager
def waiting(what='another process'):
  """Context of a call that waits for the other processes."""
  global _doing
  alive()
  _doing = f'has waited for {what}'
  try:
    yield
  finally:
    _doing = _BUSY
    alive()


def checkpointing():
  """The same for calls of Orbax, which wait for all processes and the disk."""
  return waiting('another process or the disk')


def _watch(stall_seconds, name):
  while time.monotonic() - _last < stall_seconds:
    time.sleep(_POLL_SECONDS)
  print(
    f'{name} {_doing} for {stall_seconds:g} seconds (--stall_seconds): it '
    'ends, and the others with it. The newest checkpoint is valid: run the '
    'same command again. Its stack:',
    file=sys.stderr,
    flush=True,
  )
  faulthandler.dump_traceback(all_threads=True)
  os._exit(EXIT_CODE)
