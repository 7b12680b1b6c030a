"""Reward components by the names that pieces give them."""

from collections.abc import Iterable

from rl_jax.types import Array, Trajectories


def called(name: str, names: Iterable[str]) -> str | None:
  """The component of that name, or the only FUNCTION/name, or None.

  The second are components of reward functions (tasks.RewardFunctions), which
  carry the name of their function.
  """
  names = list(names)
  if name in names:
    return name
  found = [one for one in names if one.endswith(f'/{name}')]
  return found[0] if len(found) == 1 else None


def component(name: str, traj: Trajectories) -> Array:
  """Its values [B].

  Raises: ValueError if neither task, functions, judges nor models have it.
  """
  found = called(name, traj.rewards)
  if found is None:
    raise ValueError(
      f'no reward component is called {name!r}, or several are: there are '
      f'{sorted(traj.rewards)}'
    )
  return traj.rewards[found]
