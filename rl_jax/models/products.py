"""Products of states with weights, in forms that XLA on CPU runs fast."""

import math

import jax
from jax import lax

from rl_jax.types import Array


@jax.custom_vjp
def product(x: Array, weight: Array) -> Array:
  """x @ weight; on CPU its gradient x^T dy multiplies a stored transpose.

  XLA on CPU contracts first dimensions at half the speed of others. The
  narrower one of x and dy is transposed: less is written, and a wide x would be
  computed column by column (25 times slower).
  """
  return x @ weight


def _product_backward(saved, dy):
  x, weight = saved
  if x.shape[1] <= dy.shape[1]:
    gradient = _written(x.T) @ dy
  else:
    gradient = _written(_written(dy.T) @ x).T
  return dy @ weight.T, gradient


def _written(x: Array) -> Array:
  """x, stored: on CPU no product transposes it again while reading it."""
  return lax.platform_dependent(
    x, cpu=lax.optimization_barrier, default=lambda x: x
  )


product.defvjp(lambda x, weight: (x @ weight, (x, weight)), _product_backward)


def dense(x: Array, weight: Array, inputs: int) -> Array:
  """Contracts the last dimensions of x with the first ones of weight.

  It is one product of two matrices: with more dimensions XLA on CPU runs the
  transposed products of the backward pass at less than half the speed.
  """
  lead, tail = x.shape[: x.ndim - inputs], weight.shape[inputs:]
  size = math.prod(weight.shape[:inputs])
  y = product(x.reshape(-1, size), weight.astype(x.dtype).reshape(size, -1))
  return y.reshape(*lead, *tail)
