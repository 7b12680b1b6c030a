"""Advantages within a bound."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import credit
from rl_jax.pieces.roles import CreditContext

A = jnp.array([[2.0, -0.3], [0.5, -0.7]])


def test_by_hand():
  """Beyond .5 they are cut; rows and tokens alike."""
  found = credit.ClipAdvantage()(CreditContext(A, None)).value
  np.testing.assert_allclose(found, [[0.5, -0.3], [0.5, -0.5]])
  np.testing.assert_allclose(
    credit.ClipAdvantage(limit=1.0)(CreditContext(A[0], None)).value[0], 1
  )


def test_wide_bounds_change_nothing_and_signs_stay():
  """E0."""
  np.testing.assert_array_equal(
    credit.ClipAdvantage(limit=2.0)(CreditContext(A, None)).value, A
  )
  negated = credit.ClipAdvantage()(CreditContext(-A, None)).value
  np.testing.assert_array_equal(
    negated, -credit.ClipAdvantage()(CreditContext(A, None)).value
  )
