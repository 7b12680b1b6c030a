"""Groups taken out of a batch, and pieces of whole groups."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.types import Array, Trajectories


def take(traj: Trajectories, group_M: Array) -> Trajectories:
  """The groups at the given indices, with all their rows."""
  N = traj.num_prompts

  def one(x: Array):
    rows = x.shape[0] // N
    picked = x.reshape(N, rows, *x.shape[1:])[group_M]
    return picked.reshape(-1, *x.shape[1:])

  return jax.tree.map(one, traj)


def take_rows(traj: Trajectories, row_M: Array) -> Trajectories:
  """The rows at the given indices, each as a group with its prompt."""
  N, group_M = traj.num_prompts, row_M // traj.group_size

  def one(x: Array):
    return x[group_M if x.shape[0] == N else row_M]

  return jax.tree.map(one, traj).replace(group_size=1)


def split(tree: Any, num_prompts: int, pieces: int) -> Any:
  """Leading [N or N*G] becomes [pieces, ...], strided over groups.

  Strided (piece m holds groups m, m + pieces, ...), because contiguous pieces
  of row-sharded arrays would move rows between devices.
  """

  def one(x: Array):
    rows = x.shape[0] // num_prompts
    x = x.reshape(num_prompts // pieces, pieces, rows, *x.shape[1:])
    x = jnp.moveaxis(x, 1, 0)
    return x.reshape(pieces, -1, *x.shape[3:])

  return jax.tree.map(one, tree)


def merge(tree: Any, num_prompts: int) -> Any:
  """Undoes split on [pieces, rows, ...] arrays."""

  def one(x: Array):
    pieces = x.shape[0]
    rows = pieces * x.shape[1] // num_prompts
    x = x.reshape(pieces, num_prompts // pieces, rows, *x.shape[2:])
    return jnp.moveaxis(x, 0, 1).reshape(num_prompts * rows, *x.shape[3:])

  return jax.tree.map(one, tree)
