"""Sums whose bits do not depend on the number of rows."""

import jax
import numpy as np
import pytest

from rl_jax.models.products import row_sums


@pytest.mark.parametrize('size', [1, 7, 64, 258, 1024])
def test_steady_sums_are_the_same_among_fewer_rows(size):
  """E0 among any 16 or 8 of 32 rows; E1 beside exact sums."""
  rng = np.random.default_rng(size)
  x_RC = rng.normal(size=(32, size)).astype(np.float32)
  sums = jax.jit(row_sums, static_argnums=1)
  every = np.asarray(sums(x_RC, True))
  for count in (16, 8):
    some = rng.permutation(32)[:count]
    np.testing.assert_array_equal(sums(x_RC[some], True), every[some])
  exact = x_RC.astype(np.float64).sum(axis=1)
  np.testing.assert_allclose(every, exact, rtol=1e-5, atol=1e-4)
  np.testing.assert_allclose(sums(x_RC, False), exact, rtol=1e-5, atol=1e-4)


def test_leading_axes_stay():
  """Sums of each row of a block."""
  x_ABC = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
  np.testing.assert_array_equal(row_sums(x_ABC, True), x_ABC.sum(-1))
