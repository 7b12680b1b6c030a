"""Memory that a compilation leaves behind goes back to the system.

XLA frees what it compiled with, but the C library keeps most of it: 0.35 GB of
a process that compiled the sampler of an 8-layer model.
"""

import ctypes
import functools
import sys

import jax

_COMPILED = '/jax/core/compile/backend_compile_duration'
_LONG_SECONDS = 1.0  # shorter ones leave little


@functools.cache
def give_back_after_compilations() -> None:
  """From now on, in this process; nothing where the C library is not glibc."""
  if sys.platform != 'linux':
    return
  trim = getattr(ctypes.CDLL(None), 'malloc_trim', None)
  if trim is None:
    return

  def listen(event: str, seconds: float, **_) -> None:
    if event == _COMPILED and seconds > _LONG_SECONDS:
      trim(0)

  jax.monitoring.register_event_duration_secs_listener(listen)
