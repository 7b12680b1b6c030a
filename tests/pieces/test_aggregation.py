"""Aggregation rules on l = [[1, 2, 3, -], [4, -, -, -]]."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import aggregation
from rl_jax.pieces.control_split import ControlSplit

LOSS = jnp.array([[1.0, 2.0, 3.0, 0.0], [4.0, 0.0, 0.0, 0.0]])
MASK = jnp.array([[1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
ONES = jnp.ones(2)

RULES = [
  # (1 + 2 + 3 + 4) / 4 tokens
  (aggregation.TokenMean(), 2.5),
  # (6 + 4) / 2 rows
  (aggregation.SeqMeanTokenSum(), 5.0),
  # (6 / 3 + 4 / 1) / 2 rows
  (aggregation.SeqMeanTokenMean(), 3.0),
  # (6 + 4) / (2 rows * 4)
  (aggregation.SeqMeanTokenSumNorm(length=4.0), 1.25),
  # one group of two rows: 10 / 4 tokens
  (aggregation.GroupTokenMean(), 2.5),
]
IDS = [type(rule).__name__ for rule, _ in RULES]


def total(rule, loss, mask, weight, group_size=2):
  """The aggregated scalar."""
  return float((rule(mask, weight, group_size) * loss).sum())


@pytest.mark.parametrize('rule, expected', RULES, ids=IDS)
def test_by_hand(rule, expected):
  """The worked example of the file's docstring."""
  assert total(rule, LOSS, MASK, ONES) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize('rule, expected', RULES, ids=IDS)
def test_dead_rows_count_in_no_denominator(rule, expected):
  """A group of one empty and one zero-weight row changes nothing; E1."""
  loss = jnp.concatenate([LOSS, LOSS])
  mask = jnp.concatenate([MASK, MASK.at[0].set(0.0)])
  weight = jnp.array([1.0, 1.0, 1.0, 0.0])
  assert total(rule, loss, mask, weight) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize('rule, expected', RULES, ids=IDS)
def test_row_weights_scale_without_renormalising(rule, expected):
  """Weight 1/2 on every row halves the loss: it is a weight, not a count."""
  assert total(rule, LOSS, MASK, 0.5 * ONES) == pytest.approx(expected / 2)


@pytest.mark.parametrize('rule, expected', RULES, ids=IDS)
def test_padding_changes_nothing(rule, expected):
  """E1: the padded width enters nowhere."""
  loss, mask = jnp.pad(LOSS, ((0, 0), (0, 3))), jnp.pad(MASK, ((0, 0), (0, 3)))
  assert total(rule, loss, mask, ONES) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize('rule, _', RULES, ids=IDS)
def test_nothing_to_train_is_zero(rule, _):
  """An empty minibatch has weights 0, not NaN."""
  weights = rule(jnp.zeros_like(MASK), ONES, 2)
  np.testing.assert_array_equal(weights, np.zeros_like(MASK))


def test_equal_lengths_agree_up_to_a_constant():
  """Rows of 3 tokens: sums are 3 times the means, 3/4 of them by length 4."""
  mask = jnp.array([[1.0, 1.0, 1.0, 0.0]] * 2)
  loss = jnp.arange(8.0).reshape(2, 4)
  values = [total(rule, loss, mask, ONES) for rule, _ in RULES]
  np.testing.assert_allclose(
    np.array(values) / values[0], [1, 3, 1, 0.75, 1], rtol=1e-6
  )


def test_group_mean_weighs_prompts_alike():
  """Groups {l = 1, three tokens} and {l = 4, one token}: (1 + 4) / 2."""
  loss = jnp.where(MASK > 0, jnp.array([[1.0], [4.0]]) * jnp.ones((2, 4)), 0.0)
  rule = aggregation.GroupTokenMean()
  assert total(rule, loss, MASK, ONES, group_size=1) == pytest.approx(2.5)


def test_length_must_be_positive():
  """The message names the field."""
  with pytest.raises(ValueError, match='SeqMeanTokenSumNorm.length = 0'):
    aggregation.SeqMeanTokenSumNorm(length=0.0)


# DeGRPO's aggregation: rows of five and three tokens, A = 1 and -1.
SPLIT_MASK = jnp.array([[1.0, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0]])
SPLIT_LOSS = jnp.array([[-1.0] * 6, [1.0] * 6])  # on-policy: -A


def test_control_split_by_hand():
  """Control (-1 + 1) / 2 = 0; the others (-4 + 2) / 6 = -1/3. Pooled: -1/4."""
  weight = ControlSplit(coef=1e-3)(SPLIT_MASK, ONES, 2)
  np.testing.assert_allclose((weight * SPLIT_LOSS).sum(), -1 / 3, rtol=1e-5)
  np.testing.assert_allclose(weight[0, :2], [5e-4, 1 / 6], rtol=1e-5)
  pooled = aggregation.TokenMean()(SPLIT_MASK, ONES, 2)
  np.testing.assert_allclose((pooled * SPLIT_LOSS).sum(), -1 / 4, rtol=1e-5)


def test_coef_rows_over_other_tokens_is_the_pooled_mean():
  """E1: 2 / 6 gives every token 1/6, the token mean times 8/6."""
  weight = ControlSplit(coef=2 / 6)(SPLIT_MASK, ONES, 2)
  pooled = aggregation.TokenMean()(SPLIT_MASK, ONES, 2)
  np.testing.assert_allclose(weight, pooled * 8 / 6, rtol=1e-5)


def test_control_token_does_not_see_the_length():
  """E0: a longer row 1 leaves the first column as it was."""
  longer = SPLIT_MASK.at[1, 3:].set(1.0)
  np.testing.assert_array_equal(
    ControlSplit()(longer, ONES, 2)[:, 0],
    ControlSplit()(SPLIT_MASK, ONES, 2)[:, 0],
  )


def test_dropped_rows_and_single_tokens():
  """Row 1 has weight 0: one row, four other tokens. A response of one token has
  no second term."""
  weight = ControlSplit(coef=1.0)(SPLIT_MASK, jnp.array([1.0, 0.0]), 2)
  np.testing.assert_allclose(weight[0], [1, 0.25, 0.25, 0.25, 0.25, 0])
  np.testing.assert_array_equal(weight[1], 0)
  single = ControlSplit(coef=1.0)(jnp.array([[1.0, 0]]), jnp.ones(1), 1)
  np.testing.assert_array_equal(single, [[1, 0]])


def test_forced_first_tokens_are_no_control_tokens():
  """Row 1 did not choose its first: the control mean is row 0's alone, and the
  others are 4 + 2 tokens as before."""
  mask = SPLIT_MASK.at[1, 0].set(0.0)
  weight = ControlSplit(coef=1.0)(mask, ONES, 2)
  np.testing.assert_allclose(weight[:, 0], [1.0, 0.0])
  np.testing.assert_allclose(weight[1, :4], [0, 1 / 6, 1 / 6, 0], rtol=1e-6)
