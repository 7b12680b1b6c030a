"""Quantiles that are exact between equal numbers."""

import jax.numpy as jnp

from rl_jax.types import Array


def row_quantiles(x_MS: Array, level_L: Array) -> Array:
  """Linearly interpolated quantiles of each row without its NaN, [M, L].

  x_i + w (x_{i+1} - x_i) between neighbours, so that equal numbers give exactly
  that number; jnp.quantile has (1 - w) x_i + w x_{i+1}, which rounds. A row
  of nothing but NaN has NaN.
  """
  rising_MS = jnp.sort(x_MS, axis=1)  # NaN comes last
  last_M1 = jnp.maximum((~jnp.isnan(x_MS)).sum(1, keepdims=True) - 1, 0)
  place_ML = level_L[None] * last_M1
  low_ML = jnp.floor(place_ML).astype(jnp.int32)
  high_ML = jnp.minimum(low_ML + 1, last_M1)
  below_ML = jnp.take_along_axis(rising_MS, low_ML, axis=1)
  above_ML = jnp.take_along_axis(rising_MS, high_ML, axis=1)
  return below_ML + (place_ML - low_ML) * (above_ML - below_ML)
