"""Weights of a sampler that is less exact than the trainer."""

from typing import Any

import jax
import jax.numpy as jnp

TRAINER, BFLOAT16 = 'trainer', 'bfloat16'
_LARGEST = {'int8': 127, 'int4': 7}  # of the integers
SAMPLER_WEIGHTS = (TRAINER, BFLOAT16, *_LARGEST)


def rounded(params: dict[str, Any], how: str) -> dict[str, Any]:
  """The parameters with the matrices of the model rounded, dtypes as before.

  bfloat16: to 8 significant bits. int8, int4: x -> s round(x / s) with
  s = max |x| / 127 or / 7 over each index of the last axis. Named policies,
  scales of norms and biases stay.
  """
  if how == TRAINER:
    return params

  def matrices(x):
    return _rounded(x, how) if x.ndim > 1 else x

  return {
    name: jax.tree.map(matrices, tree) if name in ('model', 'lora') else tree
    for name, tree in params.items()
  }


def _rounded(x, how):
  if how == BFLOAT16:  # XLA may take out a pair of conversions; it keeps this
    return jax.lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)
  axes = tuple(range(x.ndim - 1))
  scale = jnp.abs(x).max(axis=axes, keepdims=True) / _LARGEST[how]
  return jnp.round(x / jnp.where(scale > 0, scale, 1)) * scale
