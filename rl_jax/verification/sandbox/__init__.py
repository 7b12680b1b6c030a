"""Runs untrusted Python in its own process, for rewards on code."""

from rl_jax.verification.sandbox.breach import BreachError
from rl_jax.verification.sandbox.python_calls import (
  LAYERS,
  SAFE,
  Limits,
  Report,
  Result,
  SandboxError,
  check_packages,
  check_required,
  run_calls,
)

__all__ = [
  'BreachError',
  'LAYERS',
  'Limits',
  'Report',
  'Result',
  'SAFE',
  'SandboxError',
  'check_packages',
  'check_required',
  'run_calls',
]
