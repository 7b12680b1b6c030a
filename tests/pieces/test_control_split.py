"""DeGRPO's aggregation: rows of five and three tokens, A = 1 and -1."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces import aggregation
from rl_jax.pieces.control_split import ControlSplit
from rl_jax.pieces.roles import AggregationContext

ONES = jnp.ones(2)
SPLIT_MASK = jnp.array([[1.0, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0]])
SPLIT_LOSS = jnp.array([[-1.0] * 6, [1.0] * 6])  # on-policy: -A


def test_control_split_by_hand():
  """Control (-1 + 1) / 2 = 0; the others (-4 + 2) / 6 = -1/3. Pooled: -1/4."""
  weight = ControlSplit()(AggregationContext(SPLIT_MASK, ONES, 2))
  np.testing.assert_allclose((weight * SPLIT_LOSS).sum(), -1 / 3, rtol=1e-5)
  np.testing.assert_allclose(weight[0, :2], [5e-4, 1 / 6], rtol=1e-5)
  pooled = aggregation.TokenMean()(AggregationContext(SPLIT_MASK, ONES, 2))
  np.testing.assert_allclose((pooled * SPLIT_LOSS).sum(), -1 / 4, rtol=1e-5)


def test_coef_rows_over_other_tokens_is_the_pooled_mean():
  """E1: 2 / 6 gives every token 1/6, the token mean times 8/6."""
  weight = ControlSplit(coef=2 / 6)(AggregationContext(SPLIT_MASK, ONES, 2))
  pooled = aggregation.TokenMean()(AggregationContext(SPLIT_MASK, ONES, 2))
  np.testing.assert_allclose(weight, pooled * 8 / 6, rtol=1e-5)


def test_control_token_does_not_see_the_length():
  """E0: a longer row 1 leaves the first column as it was."""
  longer = SPLIT_MASK.at[1, 3:].set(1.0)
  np.testing.assert_array_equal(
    ControlSplit()(AggregationContext(longer, ONES, 2))[:, 0],
    ControlSplit()(AggregationContext(SPLIT_MASK, ONES, 2))[:, 0],
  )


def test_dropped_rows_and_single_tokens():
  """Row 1 has weight 0: one row, four other tokens. A response of one token has
  no second term."""
  weight = ControlSplit(coef=1.0)(
    AggregationContext(SPLIT_MASK, jnp.array([1.0, 0.0]), 2)
  )
  np.testing.assert_allclose(weight[0], [1, 0.25, 0.25, 0.25, 0.25, 0])
  np.testing.assert_array_equal(weight[1], 0)
  single = ControlSplit(coef=1.0)(
    AggregationContext(jnp.array([[1.0, 0]]), jnp.ones(1), 1)
  )
  np.testing.assert_array_equal(single, [[1, 0]])


def test_forced_first_tokens_are_no_control_tokens():
  """Row 1 did not choose its first: the control mean is row 0's only, and the
  others are 4 + 2 tokens as before."""
  mask = SPLIT_MASK.at[1, 0].set(0.0)
  weight = ControlSplit(coef=1.0)(AggregationContext(mask, ONES, 2))
  np.testing.assert_allclose(weight[:, 0], [1.0, 0.0])
  np.testing.assert_allclose(weight[1, :4], [0, 1 / 6, 1 / 6, 0], rtol=1e-6)
