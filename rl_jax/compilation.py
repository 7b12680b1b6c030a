"""How the large programs are compiled."""

import os

import jax

_LEVEL = 'xla_backend_optimization_level'


def options() -> dict[str, int] | None:
  """Compiler options of jax.jit; XLA_FLAGS that say something else win.

  On CPU the products run in libraries, and LLVM, which compiles the rest,
  needs a fifth longer at its usual level for code that is no faster.
  """
  if jax.default_backend() != 'cpu' or _LEVEL in os.environ.get(
    'XLA_FLAGS', ''
  ):
    return None
  return {_LEVEL: 1}
