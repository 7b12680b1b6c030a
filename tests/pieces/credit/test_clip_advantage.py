"""Advantages within a bound."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import credit

A = jnp.array([[2.0, -0.3], [0.5, -0.7]])


def test_by_hand():
  """Beyond .5 they are cut; rows and tokens alike."""
  found = credit.ClipAdvantage()(A, None)
  np.testing.assert_allclose(found, [[0.5, -0.3], [0.5, -0.5]])
  np.testing.assert_allclose(credit.ClipAdvantage(limit=1.0)(A[0], None)[0], 1)


def test_wide_bounds_change_nothing_and_signs_stay():
  """E0."""
  np.testing.assert_array_equal(credit.ClipAdvantage(limit=2.0)(A, None), A)
  negated = credit.ClipAdvantage()(-A, None)
  np.testing.assert_array_equal(negated, -credit.ClipAdvantage()(A, None))


def test_fields_are_checked():
  with pytest.raises(ValueError, match='ClipAdvantage.limit = 0.0'):
    credit.ClipAdvantage(limit=0.0)
