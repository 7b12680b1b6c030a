"""Groups whose rows are the leaves of a tree that grows from the prompt."""

import jax.numpy as jnp

from rl_jax.pieces.ops.masking import (
  by_group,
  masked_mean,
  safe_divide,
  safe_sqrt,
  ungroup,
)
from rl_jax.types import Array


def edge_advantages(
  reward_B: Array,
  valid_B: Array,
  node_BK: Array,
  group_size: int,
  scaled: bool,
) -> Array:
  """V(child) - V(parent) of the edges above every leaf, [B, K + 1].

  node_BK: numbers of the nodes above a leaf within its group, from the prompt
  on; below the last one lies the leaf itself. V(leaf) = reward, V(node) = mean
  over the valid leaves below it. Where all of a node are equal, the edges below
  it are exactly 0. scaled: divided by the standard deviation over the children
  of the parent (population) plus 1e-8; each child counts with its leaves.
  """
  leaf_B1 = jnp.arange(len(node_BK), dtype=node_BK.dtype)[:, None]
  id_BK = jnp.concatenate([jnp.zeros_like(leaf_B1), node_BK, leaf_B1], axis=1)
  id_NGK = by_group(id_BK, group_size)
  same_NGGK = id_NGK[:, :, None] == id_NGK[:, None]
  weight_NGGK = same_NGGK * by_group(valid_B, group_size)[:, None, :, None]
  child_NGGK, parent_NGGK = weight_NGGK[..., 1:], weight_NGGK[..., :-1]
  reward_NGGK = by_group(reward_B, group_size)[:, None, :, None]
  # The parent's smallest reward is taken off first: means of different numbers
  # of equal float32 numbers are not always equal.
  low_NGK = jnp.where(parent_NGGK > 0, reward_NGGK, jnp.inf).min(2)
  above_NGGK = reward_NGGK - low_NGK[:, :, None]
  edge_NGK = masked_mean(above_NGGK, child_NGGK, axis=2)
  edge_NGK -= masked_mean(above_NGGK, parent_NGGK, axis=2)
  if scaled:
    squares_NGK = (parent_NGGK * edge_NGK[:, None] ** 2).sum(2)
    mean_NGK = safe_divide(squares_NGK, parent_NGGK.sum(2))
    edge_NGK = edge_NGK / (safe_sqrt(mean_NGK) + 1e-8)
  return ungroup(edge_NGK)


def on_edges(edge_BK: Array, edge_end_BK: Array, num_tokens: int) -> Array:
  """The value of the edge that holds each token, [B, T].

  edge_end_BK: the first token after each edge but the last.
  """
  position_T = jnp.arange(num_tokens)
  behind_BTK = position_T[None, :, None] >= edge_end_BK[:, None, :]
  return jnp.take_along_axis(edge_BK, behind_BTK.sum(2), axis=1)
