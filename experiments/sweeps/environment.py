"""The environment that numbers depend on: versions, commit, device."""

import functools
import subprocess
import sys
from typing import Any

import jax

from experiments.flags import configuration


def environment() -> dict[str, Any]:
  """Versions, commit and device, which also determine numbers and seconds."""
  return {
    'versions': {'python': sys.version.split()[0], 'jax': jax.__version__},
    'commit': commit(),
    'device': f'{jax.device_count()} x {jax.devices()[0].device_kind}',
  }


@functools.cache
def commit() -> str:
  """The commit of the code, or 'unknown'.

  Of the first call: a later commit is not what a running process has loaded.
  """
  found = subprocess.run(
    ['git', 'rev-parse', '--short', 'HEAD'],
    cwd=configuration.ROOT,
    capture_output=True,
    text=True,
  )
  return found.stdout.strip() or 'unknown'
