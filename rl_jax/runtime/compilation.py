"""The large programs: options, their cache for the next run, and their log."""

import functools
import os
import pathlib

from absl import logging
import jax

from rl_jax.runtime.platform import Platform

_LEVEL = 'xla_backend_optimization_level'
_EMITTERS = 'xla_cpu_use_fusion_emitters'
COMPILED = '/jax/core/compile/backend_compile_duration'
_CACHE = 'jax_compilation_cache_dir'
LOGGED_SECONDS = 1.0  # shorter compilations are not worth a line


def keep_programs(platform: Platform) -> None:
  """Keeps compiled programs on disk, so that the next run need not wait.

  On accelerators, where a program takes up to minutes; not on CPU, where XLA
  warns that a program from another machine may not run. What the variable
  JAX_COMPILATION_CACHE_DIR or the configuration of JAX names is kept, an empty
  variable too: then nothing is kept.
  """
  given = 'JAX_COMPILATION_CACHE_DIR' in os.environ
  if platform.is_cpu or given or jax.config.values[_CACHE]:
    return
  caches = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
  folder = pathlib.Path(caches) / 'rl_jax' / 'programs'
  try:
    folder.mkdir(parents=True, exist_ok=True)
  except OSError as error:
    logging.warning('compiled programs are not kept: %s', error)
    return
  jax.config.update(_CACHE, str(folder))
  logging.info('compiled programs are kept in %s', folder)


@functools.cache
def log_programs() -> None:
  """Logs every program that takes long to compile, with its seconds."""
  jax.monitoring.register_event_duration_secs_listener(_log)


def _log(event: str, duration_secs: float, fun_name: str = '', **_) -> None:
  if event == COMPILED and duration_secs >= LOGGED_SECONDS:
    logging.info('compiled %s in %.0f s', fun_name, duration_secs)


def options(platform: Platform) -> dict[str, int] | None:
  """Compiler options of jax.jit; flags that XLA_FLAGS sets are left unchanged.

  On CPU matrix products run in libraries; LLVM, which compiles the rest, takes
  20% longer at its default level, for code that is not faster.
  """
  return _unless_set({_LEVEL: 1}, platform)


def training_options(
  platform: Platform,
) -> dict[str, int | bool] | None:
  """The same for score and update, which have hundreds of kernels.

  The older emitters of XLA (removed in jax 0.11) compile them in half the time;
  an update then takes 4% longer.
  """
  former = {_EMITTERS: False} if jax.__version_info__ < (0, 11) else {}
  return _unless_set({_LEVEL: 1, **former}, platform)


def _unless_set(chosen, platform):
  if not platform.is_cpu:
    return None
  flags = os.environ.get('XLA_FLAGS', '')
  return {k: v for k, v in chosen.items() if k not in flags} or None
