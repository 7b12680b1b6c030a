"""Programs that print a line for each weight of a heuristic."""

from typing import Any

from absl import app

from rl_jax.checks import INT32
from rl_jax.types import Array, Trajectories


def summary(traj: Trajectories, results: dict[str, Array]) -> dict[str, float]:
  """Means over rows, rounded."""
  logp_B = (traj.logp_behaviour_BT * traj.mask_BT).sum(axis=1)
  means = {**results, 'logp': logp_B}
  return {name: round(float(x.mean()), 4) for name, x in means.items()}


def numbers(flag: Any, kind: type, least: float) -> list[Any]:
  """The values of a list, each of a `kind`, as int, and of at least so much.

  Raises: UsageError for others, and for none.
  """
  try:
    found = [kind(text) for text in flag.value]
  except ValueError:
    found = []
  if not found or not all(least <= x <= INT32 for x in found):
    raise app.UsageError(
      f'--{flag.name}={",".join(flag.value)}: expected numbers from {least} to '
      f'{INT32}, separated by commas'
    )
  return found
