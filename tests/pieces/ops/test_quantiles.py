"""Quantiles of rows."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces.ops.quantiles import row_quantiles


def test_by_hand():
  """0, 10, 20, 30 at 1/2: place 1.5, so 15; without its NaN 0, 10: 5."""
  x = jnp.array([[30.0, 0, 20, 10], [jnp.nan, 10, 0, jnp.nan]])
  found = row_quantiles(x, jnp.array([0.0, 0.5, 1.0]))
  np.testing.assert_array_equal(found, [[0, 15, 30], [0, 5, 10]])
  nothing = row_quantiles(jnp.full((1, 3), jnp.nan), jnp.array([0.5]))
  assert np.isnan(nothing).all()


def test_of_numpy():
  """E1."""
  rng = np.random.default_rng(0)
  x, levels = rng.normal(size=(3, 11)).astype(np.float32), np.arange(21) / 20
  found = row_quantiles(jnp.asarray(x), jnp.asarray(levels))
  expected = np.quantile(x, levels, axis=1).T
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_equal_numbers_are_their_quantiles():
  """E0; jnp.quantile is off by rounding for a part of these."""
  levels, off = jnp.arange(1, 20) / 20, 0
  for value in np.linspace(0.1, 1.1, 11, dtype=np.float32):
    for count in range(2, 10):
      x = jnp.full((1, count), value)
      np.testing.assert_array_equal(row_quantiles(x, levels), value)
      off += bool((jnp.quantile(x[0], levels) != value).any())
  assert off
