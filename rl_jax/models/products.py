"""Products of states with weights, in forms that XLA on CPU runs fast."""

import math

import jax
from jax import lax
import jax.numpy as jnp

from rl_jax.types import Array

# Columns of ones of steady sums: with one XLA on CPU has another kernel, which
# sums few rows in another order.
ONES = 8


def row_sums(x: Array, steady: bool) -> Array:
  """Sums of float32 numbers over the last axis.

  steady: a sum has the same bits whatever the number of rows, as a product with
  ones. In the loops of XLA on CPU the order of additions depends on it.
  """
  if not steady:
    return x.sum(axis=-1)
  size = x.shape[-1]
  sums = jnp.matmul(
    x.reshape(-1, size),
    jnp.ones((size, ONES), x.dtype),
    precision=lax.Precision.HIGHEST,
  )
  return sums[:, 0].reshape(x.shape[:-1])


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
