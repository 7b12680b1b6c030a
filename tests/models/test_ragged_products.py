"""Kernels of ragged products, interpreted, against jax.lax.ragged_dot (E1)."""

import functools

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.models import ragged_products
from rl_jax.runtime.platform import Platform

SIZES = {
  'uneven': (100, [0, 37, 1, 20, 42]),  # the last tiles are not full
  'other devices have rows': (90, [3, 0, 30]),
  'many rows': (700, [300, 140, 260]),  # several tiles a block
  'none': (16, [0, 0]),
  'few rows': (3, [1, 0, 0, 0, 2, 0, 0]),
}


@pytest.mark.parametrize('name', SIZES)
@pytest.mark.parametrize(('width', 'columns'), [(24, 150), (80, 5)])
def test_kernels_are_the_ragged_product(name, width, columns):
  """Values and both gradients; sides that tiles do not divide."""
  rows, sizes = SIZES[name]
  rng = np.random.default_rng(rows)
  x, w, dy = (
    jnp.asarray(rng.normal(size=shape), jnp.float32)
    for shape in ((rows, width), (len(sizes), width, columns), (rows, columns))
  )
  mine = (jnp.arange(rows) < sum(sizes))[:, None]

  def results(multiply, x, w):
    def masked(x, w):
      x = jnp.where(mine, x, 0)
      return jnp.where(mine, multiply(x, w, jnp.array(sizes, jnp.int32)), 0)

    y, pull = jax.vjp(masked, x, w)
    return y, *pull(dy)

  def interpreted(x, w, sizes):
    return ragged_products.product(x, w, sizes, True)

  exact = functools.partial(lax.ragged_dot, precision='highest')
  found = jax.jit(functools.partial(results, interpreted))(x, w)
  wanted = jax.jit(functools.partial(results, exact))(x, w)
  for a, b in zip(found, wanted, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize('name', SIZES)
def test_kernels_find_the_matrices_of_a_layer(name):
  """E0: those of the same matrices apart."""
  rows, sizes = SIZES[name]
  rng = np.random.default_rng(rows)
  x = jnp.asarray(rng.normal(size=(rows, 24)), jnp.float32)
  w = jnp.asarray(rng.normal(size=(3, len(sizes), 24, 40)), jnp.float32)
  sizes_E = jnp.array(sizes, jnp.int32)

  @jax.jit
  def of_layer(number):
    return ragged_products.product_of_layer(x, w, number, sizes_E, True)

  for number in range(3):
    wanted = ragged_products.product(x, w[number], sizes_E, True)
    found = of_layer(jnp.int32(number))
    np.testing.assert_array_equal(found[: sum(sizes)], wanted[: sum(sizes)])


@pytest.mark.parametrize('rows', [1, 300, ragged_products.MOST_COMPARED + 1])
def test_rows_are_sorted_by_block(rows):
  """Compared in pairs or sorted: the bits of stable sorts (E0)."""
  rng = np.random.default_rng(rows)
  block_R = jnp.asarray(rng.integers(0, 8, rows), jnp.int32)
  order_R, place_R = jax.jit(ragged_products.sorted_by_block)(block_R)
  np.testing.assert_array_equal(order_R, np.argsort(block_R, stable=True))
  np.testing.assert_array_equal(place_R, np.argsort(order_R))
  # Rows of the last block are of other devices.
  sizes = ragged_products.block_sizes(block_R, 7)
  np.testing.assert_array_equal(sizes, np.bincount(block_R, minlength=8)[:7])


def test_where_kernels_run():
  """GPUs that multiply in bfloat16."""
  runs = ragged_products.runs
  assert runs(Platform('cuda', (8, 9)), 'bfloat16')
  assert not runs(Platform('cuda', (9, 0)), 'float32')
  assert not runs(Platform('cuda', (7, 5)), 'bfloat16')
  assert not runs(Platform('rocm'), 'bfloat16')
  assert not runs(Platform('tpu'), 'bfloat16')
