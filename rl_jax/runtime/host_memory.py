"""Returns memory that compilations have freed to the operating system.

XLA frees its memory after a compilation, but the C library keeps most of it for
the process: 0.35 GB after compiling the sampler of an 8-layer model.
"""

import ctypes
import functools
import sys

import jax

from rl_jax.runtime.compilation import COMPILED

_LONG_SECONDS = 1.0  # shorter compilations leave little


@functools.cache
def give_back_after_compilations() -> None:
  """Trims the heap after every long compilation; does nothing without glibc."""
  if sys.platform != 'linux':
    return
  trim = getattr(ctypes.CDLL(None), 'malloc_trim', None)
  if trim is None:
    return

  def listen(event: str, duration_secs: float, **_) -> None:
    if event == COMPILED and duration_secs > _LONG_SECONDS:
      trim(0)

  jax.monitoring.register_event_duration_secs_listener(listen)
