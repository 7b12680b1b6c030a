"""Importance ratios between the current and an older policy."""

import jax.numpy as jnp

from rl_jax.pieces.ops.masking import masked_mean
from rl_jax.types import Array

LOG_RATIO_BOUND = 20.0  # nats; exp(20) is still far from the float32 maximum


def log_ratio(logp_BT: Array, logp_old_BT: Array, mask_BT: Array) -> Array:
  """logp - logp_old within +-20 nats, and 0 on masked tokens."""
  difference_BT = jnp.where(mask_BT > 0, logp_BT - logp_old_BT, 0.0)
  return jnp.clip(difference_BT, -LOG_RATIO_BOUND, LOG_RATIO_BOUND)


def sequence_log_ratio(log_ratio_BT: Array, mask_BT: Array) -> Array:
  """Mean log-ratio of each row's kept tokens, [B]: the geometric mean ratio."""
  return masked_mean(log_ratio_BT, mask_BT, axis=1)


def is_clipped(
  ratio: Array, advantage: Array, low: float, high: float
) -> Array:
  """True where the clipped surrogate has no gradient."""
  above = (advantage > 0) & (ratio > 1.0 + high)
  below = (advantage < 0) & (ratio < 1.0 - low)
  return above | below


def clipped_surrogate(
  ratio: Array, advantage: Array, low: float, high: float
) -> Array:
  """PPO's pessimistic loss: max(-A r, -A clip(r, 1 - low, 1 + high)).

  Written with `where`: jnp.clip has gradient 1/2 on its edge, and a limit of 0
  puts ratio 1, where every on-policy token is, on the edge.
  """
  bounded = jnp.clip(ratio, 1.0 - low, 1.0 + high)
  clipped = is_clipped(ratio, advantage, low, high)
  return -advantage * jnp.where(clipped, bounded, ratio)
