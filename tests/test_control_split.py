"""DeGRPO's aggregation: rows of five and three tokens, A = 1 and -1."""

import jax.numpy as jnp
import numpy as np

from rl_jax.aggregation import ControlSplit, TokenMean

MASK = jnp.array([[1.0, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0]])
LOSS = jnp.array([[-1.0] * 6, [1.0] * 6])  # on-policy: -A
ONE = jnp.ones(2)


def test_by_hand():
  """Control (-1 + 1) / 2 = 0; the others (-4 + 2) / 6 = -1/3. Pooled: -1/4."""
  weight = ControlSplit(coef=1e-3)(MASK, ONE, 2)
  np.testing.assert_allclose((weight * LOSS).sum(), -1 / 3, rtol=1e-5)
  np.testing.assert_allclose(weight[0, :2], [5e-4, 1 / 6], rtol=1e-5)
  pooled = TokenMean()(MASK, ONE, 2)
  np.testing.assert_allclose((pooled * LOSS).sum(), -1 / 4, rtol=1e-5)


def test_coef_rows_over_other_tokens_is_the_pooled_mean():
  """E1: 2 / 6 gives every token 1/6, the token mean times 8/6."""
  weight = ControlSplit(coef=2 / 6)(MASK, ONE, 2)
  pooled = TokenMean()(MASK, ONE, 2)
  np.testing.assert_allclose(weight, pooled * 8 / 6, rtol=1e-5)


def test_control_token_does_not_see_the_length():
  """E0: a longer row 1 leaves the first column as it was."""
  longer = MASK.at[1, 3:].set(1.0)
  np.testing.assert_array_equal(
    ControlSplit()(longer, ONE, 2)[:, 0], ControlSplit()(MASK, ONE, 2)[:, 0]
  )


def test_dropped_rows_and_single_tokens():
  """Row 1 has weight 0: one row, four other tokens. A response of one token has
  no second term."""
  weight = ControlSplit(coef=1.0)(MASK, jnp.array([1.0, 0.0]), 2)
  np.testing.assert_allclose(weight[0], [1, 0.25, 0.25, 0.25, 0.25, 0])
  np.testing.assert_array_equal(weight[1], 0)
  single = ControlSplit(coef=1.0)(jnp.array([[1.0, 0]]), jnp.ones(1), 1)
  np.testing.assert_array_equal(single, [[1, 0]])
