"""Sums, means and weights of whole rows, for sequence-level losses.

A loss of this kind is a function of one score per row. Rows carry the weight
`row_weight`; means over a group are weighted by it, so that rows and groups
that are not trained count in no denominator.
"""

import chex
import jax.numpy as jnp

from rl_jax.pieces.ops.masking import (
  by_group,
  masked_mean,
  masked_sum,
)
from rl_jax.pieces.ops.ratios import LOG_RATIO_BOUND, log_ratio
from rl_jax.pieces.ops.scan import reverse_linear_scan
from rl_jax.types import Array, Trajectories


def live_rows(mask_BT: Array, weight_B: Array) -> tuple[Array, Array]:
  """(1 where the row is trained, its number of kept tokens), each [B]."""
  chex.assert_rank([mask_BT, weight_B], [2, 1])
  tokens_B = mask_BT.sum(1)
  live_B = ((weight_B != 0) & (tokens_B > 0)).astype(jnp.float32)
  return live_B, tokens_B


def row_weight(traj: Trajectories) -> Array:
  """weight_B on valid rows with at least one trained token, else 0."""
  tokens_B = (traj.mask_BT > 0).any(1)
  return traj.weight_B * traj.valid_B * tokens_B.astype(jnp.float32)


def row_credit(traj: Trajectories) -> Array:
  """Mean advantage of each row's trained tokens, [B]."""
  return masked_mean(traj.advantages_BT, traj.mask_BT, axis=1)


def summed_log_ratio(logp_BT: Array, base_BT: Array, mask_BT: Array) -> Array:
  """log of the product ratio of each row, within +-20 nats, [B]."""
  total_B = masked_sum(log_ratio(logp_BT, base_BT, mask_BT), mask_BT, axis=1)
  return jnp.clip(total_B, -LOG_RATIO_BOUND, LOG_RATIO_BOUND)


def exact_log_ratio(logp_BT: Array, base_BT: Array, mask_BT: Array) -> Array:
  """log of the product ratio of each row, however large, [B]."""
  kept_BT = mask_BT > 0
  return jnp.where(kept_BT, logp_BT - base_BT, 0.0).sum(axis=1)


def mean_over_groups(value_N: Array, weight_B: Array) -> Array:
  """Mean over the groups in which at least one row has a weight."""
  group_size = weight_B.shape[0] // value_N.shape[0]
  live_N = (by_group(weight_B, group_size) != 0).any(1).astype(jnp.float32)
  return masked_mean(value_N, live_N)


def pair_weights(weight_NG: Array) -> Array:
  """Product of two rows' weights, 0 for a row with itself, [N, G, G]."""
  group_size = weight_NG.shape[1]
  other_GG = 1.0 - jnp.eye(group_size, dtype=jnp.float32)
  return weight_NG[:, :, None] * weight_NG[:, None, :] * other_GG[None]


def run_sum(x_BT: Array, on_BT: Array) -> Array:
  """Sum over the maximal run of on_BT = 1 that holds the token, 0 elsewhere.

  A run is a stretch of consecutive tokens: an action between two observations.
  """
  on_BT = (on_BT > 0).astype(jnp.float32)
  x_BT = jnp.where(on_BT > 0, x_BT, 0.0)
  onward_BT = reverse_linear_scan(x_BT, on_BT)
  # The same recurrence on the reversed row sums what came before.
  before_BT = reverse_linear_scan(x_BT[:, ::-1], on_BT[:, ::-1])[:, ::-1]
  return onward_BT + before_BT - x_BT


def run_starts(on_BT: Array) -> Array:
  """1 on the first token of every maximal run of on_BT = 1, else 0."""
  on_BT = (on_BT > 0).astype(jnp.float32)
  previous_BT = jnp.pad(on_BT[:, :-1], ((0, 0), (1, 0)))
  return on_BT * (1.0 - previous_BT)
