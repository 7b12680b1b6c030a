"""How the large programs are compiled."""

import os

import jax

_LEVEL = 'xla_backend_optimization_level'
_EMITTERS = 'xla_cpu_use_fusion_emitters'


def options() -> dict[str, int] | None:
  """Compiler options of jax.jit; XLA_FLAGS that say something else win.

  On CPU the products run in libraries, and LLVM, which compiles the rest,
  needs a fifth longer at its usual level for code that is no faster.
  """
  return _unless_set({_LEVEL: 1})


def training_options() -> dict[str, int | bool] | None:
  """The same for scores and updates: of hundreds of kernels, each compiled.

  The former emitters of XLA, which jax 0.11 no longer has, take half the time
  for them; an update takes 4% longer.
  """
  former = {_EMITTERS: False} if jax.__version_info__ < (0, 11) else {}
  return _unless_set({_LEVEL: 1, **former})


def _unless_set(chosen):
  if jax.default_backend() != 'cpu':
    return None
  flags = os.environ.get('XLA_FLAGS', '')
  return {k: v for k, v in chosen.items() if k not in flags} or None
