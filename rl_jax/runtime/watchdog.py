"""Ends a process that has not exchanged anything with the others for too long.

A process that hangs still answers heartbeats, so the others would wait for it
for ever. Each process watches itself: where all of them wait for one, all of
them end, and the message of that one says where it stood.
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
  """Starts the time anew."""
  global _last
  _last = time.monotonic()


@contextlib.contextmanager
def waiting(what='another process'):
  """Around what ends only when the other processes have come as far."""
  global _doing
  alive()
  _doing = f'has waited for {what}'
  try:
    yield
  finally:
    _doing = _BUSY
    alive()


def checkpointing():
  """The same around Orbax, which waits for all processes and for the disk."""
  return waiting('another process or the disk')


def _watch(stall_seconds, name):
  while time.monotonic() - _last < stall_seconds:
    time.sleep(_POLL_SECONDS)
  print(
    f'{name} {_doing} for {stall_seconds:g} seconds (--stall_seconds): it '
    'ends, and the others with it. The newest checkpoint is valid: run the '
    'same command again. It stood at:',
    file=sys.stderr,
    flush=True,
  )
  faulthandler.dump_traceback(all_threads=True)
  os._exit(EXIT_CODE)
