"""Comparisons of the samples of a group: making, reading and averaging them.

An edge counts with its own weight times those of its two rows; a mean over
edges divides by the number of edges that count, in the whole minibatch.
"""

import itertools

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces.ops.masking import (
  by_group,
  masked_sum,
  safe_divide,
)
from rl_jax.pieces.ops.sequences import row_weight
from rl_jax.types import Array, Edges, Trajectories


def all_pairs(value_B: Array, group_size: int, scale: Array | float) -> Edges:
  """Every two samples of a group; the larger value wins, equal ones do not.

  E = G (G - 1) / 2. weight_NE is 1 where the values differ; margin_NE is scale
  times their difference.
  """
  value_NG = by_group(value_B, group_size)
  pairs = list(itertools.combinations(range(group_size), 2))
  first_E, second_E = np.array(pairs, np.int32).reshape(-1, 2).T
  gap_NE = value_NG[:, first_E] - value_NG[:, second_E]
  shape = gap_NE.shape
  return oriented(
    jnp.broadcast_to(first_E, shape),
    jnp.broadcast_to(second_E, shape),
    gap_NE,
    scale,
  )


def oriented(
  first_NE: Array, second_NE: Array, gap_NE: Array, scale: Array | float
) -> Edges:
  """Edges of two samples each, of which the first is better by gap_NE."""
  swap_NE = gap_NE < 0
  return Edges(
    win_NE=jnp.where(swap_NE, second_NE, first_NE).astype(jnp.int32),
    lose_NE=jnp.where(swap_NE, first_NE, second_NE).astype(jnp.int32),
    weight_NE=(gap_NE != 0).astype(jnp.float32),
    margin_NE=scale * jnp.abs(gap_NE),
  )


def row_reward(reward: Array, traj: Trajectories) -> Array:
  """[B] as it is; of [B, T] the sum over the row's kept tokens."""
  if reward.ndim == 1:
    return reward
  return masked_sum(reward, traj.mask_BT, axis=1)


def ends(x_B: Array, edges: Edges) -> tuple[Array, Array]:
  """The values of the winning and of the losing rows, each [N, E]."""
  x_NG = x_B.reshape(edges.win_NE.shape[0], -1)
  return (
    jnp.take_along_axis(x_NG, edges.win_NE, axis=1),
    jnp.take_along_axis(x_NG, edges.lose_NE, axis=1),
  )


def live_weights(traj: Trajectories) -> Array:
  """Weight of every edge, 0 where one of its rows is not trained, [N, E]."""
  win_NE, lose_NE = ends(row_weight(traj), traj.edges)
  return traj.edges.weight_NE * win_NE * lose_NE


def edge_mean(
  x_NE: Array, weight_NE: Array, factor: Array | float = 1
) -> Array:
  """sum(weight factor x) / number of edges with a weight."""
  live_NE = (weight_NE != 0).astype(jnp.float32)
  total = masked_sum(x_NE, live_NE * weight_NE * factor)
  return safe_divide(total, live_NE.sum())


def winners(traj: Trajectories) -> Array:
  """1 on rows that win an edge that counts, else 0, [B]."""
  live_NE = (live_weights(traj) != 0).astype(jnp.float32)
  return _marked(traj.edges.win_NE, live_NE, traj)


def losers(traj: Trajectories) -> Array:
  """1 on rows that lose an edge that counts, else 0, [B]."""
  live_NE = (live_weights(traj) != 0).astype(jnp.float32)
  return _marked(traj.edges.lose_NE, live_NE, traj)


def _marked(index_NE: Array, live_NE: Array, traj: Trajectories):
  hit_NGE = jnp.arange(traj.group_size)[None, :, None] == index_NE[:, None]
  marked_NG = jnp.where(hit_NGE, live_NE[:, None], 0.0).max(axis=2, initial=0.0)
  return marked_NG.ravel()
