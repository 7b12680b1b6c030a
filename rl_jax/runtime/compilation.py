"""How the large programs are compiled."""

import os

import jax

from rl_jax.runtime.platform import Platform

_LEVEL = 'xla_backend_optimization_level'
_EMITTERS = 'xla_cpu_use_fusion_emitters'


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
