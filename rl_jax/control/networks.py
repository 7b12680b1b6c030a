"""Small feed-forward networks as lists of (weights, bias)."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.types import Array


def mlp(key: Array, sizes: Sequence[int]) -> list[Any]:
  """Weights U(-1, 1) / sqrt(inputs), biases 0."""
  keys = jax.random.split(key, len(sizes) - 1)
  return [
    (
      jax.random.uniform(k, (n, m), minval=-1.0) * n**-0.5,
      jnp.zeros(m),
    )
    for k, n, m in zip(keys, sizes[:-1], sizes[1:], strict=True)
  ]


def apply(layers: list[Any], x: Array) -> Array:
  """max(0, x) between layers; [..., inputs] -> [..., outputs]."""
  for number, (w, b) in enumerate(layers):
    x = x @ w + jnp.broadcast_to(b, (*x.shape[:-1], b.shape[0]))
    if number < len(layers) - 1:
      x = jnp.maximum(x, 0.0)
  return x
