"""The software that wrote a checkpoint, and who may read it.

Policy. A checkpoint of an older `format` (files.FORMAT) is read by every later
version; one of a newer format is an error. Other versions of the software are
not errors: a resumed run is bit for bit the same only with the versions that
saved it, so a difference is logged, and the results are then equal up to
float32 rounding. If another version of optax changed the layout of its moments,
the error of `Checkpointer.restore` names them.
"""

from collections.abc import Mapping
import functools
import importlib.metadata
import pathlib
import subprocess

from absl import logging

PACKAGES = ('rl_jax', 'jax', 'jaxlib', 'optax', 'orbax-checkpoint')
UNKNOWN = 'unknown'


@functools.cache
def current() -> dict[str, str]:
  """Versions by package, and `commit` where the code lies in a git clone."""
  found = {}
  for name in PACKAGES:
    try:
      found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
      found[name] = UNKNOWN  # run from a clone that was not installed
  return {**found, 'commit': _commit()}


def _commit() -> str:
  root = pathlib.Path(__file__).resolve().parents[3]
  if not (root / '.git').exists():
    return UNKNOWN
  command = ['git', '-C', str(root), 'describe', '--always', '--dirty']
  try:
    done = subprocess.run(
      [*command, '--abbrev=40'], capture_output=True, text=True, timeout=10
    )
  except (OSError, subprocess.TimeoutExpired):
    return UNKNOWN
  return done.stdout.strip() or UNKNOWN


def warn_if_changed(step: int, saved: Mapping[str, str]) -> None:
  """Logs that continuing from this checkpoint will not be bit-exact."""
  changed = differences(saved)
  if changed:
    logging.warning(
      'checkpoint %d was saved by other versions (%s): what follows equals '
      'the run of those versions up to rounding, not bit for bit',
      step,
      ', '.join(changed),
    )


def differences(saved: Mapping[str, str]) -> list[str]:
  """Lines 'jax 0.9.0 -> 0.10.2' for what both sides know and disagree on."""
  now = current()
  return [
    f'{name} {saved[name]} -> {now[name]}'
    for name in now
    if name in saved
    and saved[name] != now[name]
    and UNKNOWN not in (saved[name], now[name])
  ]
