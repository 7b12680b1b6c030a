"""Masked sums, means and variances, and group reshapes.

A mask is float32 and acts as a weight. Values where it is 0 may be anything,
NaN included: they are replaced before any arithmetic, so neither values nor
gradients depend on them (the double `where`).
"""

import jax
import jax.numpy as jnp

from rl_jax.types import ENVIRONMENT, Array, Trajectories

Axis = int | tuple[int, ...] | None
OBSERVATION_LOGP = 'observation_logp'
ROUNDING = 1e-6  # relative; float32 sums and means are right to about that


def safe_divide(x: Array | float, y: Array) -> Array:
  """x / y, and 0 (with zero gradient) where y is 0."""
  zero = y == 0
  return jnp.where(zero, 0.0, x / jnp.where(zero, 1.0, y))


def masked_sum(
  x: Array, mask: Array, axis: Axis = None, keepdims: bool = False
) -> Array:
  """Sum of mask * x over the positions with mask > 0."""
  kept = jnp.where(mask > 0, x, 0.0) * mask
  return kept.sum(axis, keepdims=keepdims)


def masked_mean(
  x: Array, mask: Array, axis: Axis = None, keepdims: bool = False
) -> Array:
  """Mean of x weighted by mask; 0 where nothing is kept."""
  total = mask.sum(axis, keepdims=keepdims)
  return safe_divide(masked_sum(x, mask, axis, keepdims), total)


def masked_max(x: Array, mask: Array) -> Array:
  """Largest x where mask > 0; 0 if nothing is kept."""
  largest = jnp.where(mask > 0, x, -jnp.inf).max()
  return jnp.where(jnp.isfinite(largest), largest, 0.0)


def masked_min(x: Array, mask: Array) -> Array:
  """Smallest x where mask > 0; 0 if nothing is kept."""
  return -masked_max(-x, mask)


def masked_center(x: Array, mask: Array, axis: Axis = None) -> Array:
  """x minus its masked mean, 0 where mask is 0; equal values give exactly 0.

  The smallest kept value is taken off first: the mean of equal float32 numbers
  is not always that number, and a later division by a tiny standard deviation
  would amplify the difference.
  """
  low = jnp.where(mask > 0, x, jnp.inf).min(axis, keepdims=True)
  low = jax.lax.stop_gradient(jnp.where(jnp.isfinite(low), low, 0.0))
  shifted = jnp.where(mask > 0, x - low, 0.0)
  centered = shifted - masked_mean(shifted, mask, axis, keepdims=True)
  return jnp.where(mask > 0, centered, 0.0)


def masked_var(
  x: Array,
  mask: Array,
  axis: Axis = None,
  *,
  ddof: int = 0,
  keepdims: bool = False,
) -> Array:
  """Variance over kept values with denominator (count - ddof); 0 if too few."""
  squares = masked_sum(masked_center(x, mask, axis) ** 2, mask, axis, keepdims)
  count = mask.sum(axis, keepdims=keepdims)
  return safe_divide(squares, jnp.maximum(count - ddof, 0.0))


def is_rounding(spread: Array, size: Array) -> Array:
  """Returns whether a range or deviation is but float32 rounding of numbers of
  a size.

  To be asked before a division by it: numbers that are equal would be pushed
  apart to whole units. NaN counts as rounding.
  """
  return ~(spread > ROUNDING * jnp.abs(size))


def safe_sqrt(x: Array) -> Array:
  """Square root whose gradient at 0 is 0 instead of infinite."""
  return jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0)


def whiten(x: Array, mask: Array, eps: float, *, ddof: int = 1) -> Array:
  """(x - mean) / sqrt(var + eps) over kept values, 0 elsewhere."""
  scale = jax.lax.rsqrt(masked_var(x, mask, ddof=ddof) + eps)
  return masked_center(x, mask) * scale


def by_group(x: Array, group_size: int) -> Array:
  """[B, ...] -> [N, G, ...]: the rows of a group are adjacent."""
  return x.reshape((-1, group_size) + x.shape[1:])


def ungroup(x: Array) -> Array:
  """[N, G, ...] -> [B, ...]."""
  return x.reshape((-1,) + x.shape[2:])


def loss_mask(traj: Trajectories) -> Array:
  """mask_BT without the rows of weight 0: the tokens that are trained."""
  return traj.mask_BT * (traj.weight_B != 0).astype(jnp.float32)[:, None]


def places(name: str, traj: Trajectories) -> Array:
  """1 where a statistic is kept, [B, T]: on trained tokens, or observations."""
  if name == OBSERVATION_LOGP:
    return (traj.kind_BT == ENVIRONMENT).astype(jnp.float32)
  return traj.mask_BT


def at_last_token(x_B: Array, mask_BT: Array) -> Array:
  """[B] -> [B, T]: x on the last kept token of each row, 0 elsewhere."""
  kept_BT = (mask_BT > 0).astype(jnp.int32)
  remaining_BT = jnp.cumsum(kept_BT[:, ::-1], axis=1)[:, ::-1]
  last_BT = (kept_BT == 1) & (remaining_BT == 1)
  return jnp.where(last_BT, x_B[:, None], 0.0)


def last_token(x_BT: Array, mask_BT: Array) -> Array:
  """[B, T] -> [B]: x on the last kept token of each row, 0 without one."""
  ones_B = jnp.ones_like(x_BT[:, 0])
  return masked_sum(x_BT, at_last_token(ones_B, mask_BT), axis=1)


def on_tokens(x: Array, mask_BT: Array) -> Array:
  """[B] or [B, T] -> [B, T]: the value of a row goes to its last kept token."""
  return at_last_token(x, mask_BT) if x.ndim == 1 else x


def zero_masked(x: Array, mask_BT: Array) -> Array:
  """Zeros [B, T, ...] (and stops gradients) where the mask is 0."""
  mask = mask_BT.reshape(mask_BT.shape + (1,) * (x.ndim - 2))
  return jnp.where(mask > 0, x, 0.0)
