"""Aggregation rules on l = [[1, 2, 3, -], [4, -, -, -]]."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import aggregation
from rl_jax.pieces.roles import AggregationContext

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
  # two turns: (6 / 3 + 4 / 1) / 2
  (aggregation.TurnMean(), 3.0),
]
IDS = [type(rule).__name__ for rule, _ in RULES]


def total(rule, loss, mask, weight, group_size=2):
  """The aggregated scalar."""
  return float(
    (rule(AggregationContext(mask, weight, group_size)) * loss).sum()
  )


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
  weights = rule(AggregationContext(jnp.zeros_like(MASK), ONES, 2))
  np.testing.assert_array_equal(weights, np.zeros_like(MASK))


def test_equal_lengths_agree_up_to_a_constant():
  """Rows of 3 tokens: sums are 3 times the means, 3/4 of them by length 4."""
  mask = jnp.array([[1.0, 1.0, 1.0, 0.0]] * 2)
  loss = jnp.arange(8.0).reshape(2, 4)
  values = [total(rule, loss, mask, ONES) for rule, _ in RULES]
  np.testing.assert_allclose(
    np.array(values) / values[0], [1, 3, 1, 0.75, 1, 1], rtol=1e-6
  )


def test_group_mean_weighs_prompts_alike():
  """Groups {l = 1, three tokens} and {l = 4, one token}: (1 + 4) / 2."""
  loss = jnp.where(MASK > 0, jnp.array([[1.0], [4.0]]) * jnp.ones((2, 4)), 0.0)
  rule = aggregation.GroupTokenMean()
  assert total(rule, loss, MASK, ONES, group_size=1) == pytest.approx(2.5)


# Row 0: turns (1, 2), 3 that touch, an observation, and (5); row 1: one turn.
EPISODES = {
  'loss': jnp.array([[1.0, 2.0, 3.0, 9.0, 5.0], [4.0, 0.0, 0.0, 0.0, 0.0]]),
  'mask': jnp.array([[1.0, 1.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0, 0.0]]),
  'turn': jnp.array([[0, 0, 1, 2, 2], [0, -1, -1, -1, -1]]),
}


def test_turns_count_alike():
  """(1.5 + 3 + 5 + 4) / 4; without the record (2 + 5 + 4) / 3 runs."""
  rule, weigh = aggregation.TurnMean(), EPISODES['mask']
  weights = rule(AggregationContext(weigh, ONES, 2, EPISODES['turn']))
  expected = [[1 / 8, 1 / 8, 1 / 4, 0, 1 / 4], [1 / 4, 0, 0, 0, 0]]
  np.testing.assert_allclose(weights, expected, rtol=1e-6)
  assert float((weights * EPISODES['loss']).sum()) == pytest.approx(13.5 / 4)
  assert total(rule, EPISODES['loss'], weigh, ONES) == pytest.approx(11 / 3)


def test_longer_turns_and_other_rows_change_no_share_of_a_turn():
  """Three copies of every token: each turn keeps its sum of weights."""
  rule = aggregation.TurnMean()
  mask, turn = (jnp.repeat(EPISODES[k], 3, axis=1) for k in ('mask', 'turn'))
  weights = rule(AggregationContext(mask, ONES, 2, turn))
  once = rule(AggregationContext(EPISODES['mask'], ONES, 2, EPISODES['turn']))
  np.testing.assert_allclose(
    weights.reshape(2, 5, 3).sum(axis=2), once, rtol=1e-6
  )
  np.testing.assert_allclose(
    rule(
      AggregationContext(
        EPISODES['mask'], jnp.array([1.0, 0.0]), 2, EPISODES['turn']
      )
    )[0],
    once[0] * 4 / 3,
    rtol=1e-6,
  )
