"""Tokens of high entropy, by hand."""

import jax
import numpy as np
import pytest

from rl_jax.pieces import weights
from rl_jax.pieces.roles import LossContext

ENTROPY = np.array([[0.1, 0.5, 0.9, 0.3, 0.7]])


def evaluate(toy, fraction, entropy=ENTROPY, **fields):
  """Weights."""
  entropy = np.asarray(entropy)
  traj = toy.trajectories(
    fields.pop('mask_BT', np.ones(entropy.shape)),
    group_size=len(entropy),
    entropy_BT=entropy,
    **fields,
  )
  piece = weights.EntropyQuantile(fraction=fraction)
  return piece(LossContext({}, traj, jax.random.key(0))).value


@pytest.mark.parametrize(
  'fraction, expected',
  # floor(.2 5) = 1, floor(.5 5) = 2, floor(.1 5) = 0 becomes 1, all.
  [
    (0.2, [0, 0, 1, 0, 0]),
    (0.5, [0, 0, 1, 0, 1]),
    (0.1, [0, 0, 1, 0, 0]),
    (1.0, [1, 1, 1, 1, 1]),
  ],
)
def test_by_hand(toy, fraction, expected):
  """The largest entropies."""
  np.testing.assert_array_equal(evaluate(toy, fraction), [expected])


def test_tokens_that_trl_keeps(toy):
  """floor(.2 (n - 1)) + 1: one more than here unless 5 divides n."""
  for n in (5, 6, 9, 10, 11):
    entropy = np.arange(1.0, n + 1)
    kept = (entropy >= np.quantile(entropy, 0.8)).sum()
    assert kept == (n - 1) // 5 + 1
    assert kept - evaluate(toy, 0.2, entropy[None]).sum() == (n % 5 > 0)


def test_masked_tokens_and_dropped_rows_are_not_ranked(toy):
  """Token 2 is masked and row 1 has weight 0: token 4 leads, of 4."""
  mask = np.array([[1.0, 1, 0, 1, 1], [1, 1, 1, 1, 1]])
  actual = evaluate(
    toy,
    0.25,
    np.concatenate([ENTROPY, ENTROPY + 5]),
    mask_BT=mask,
    weight_B=np.array([1.0, 0.0]),
  )
  expected = np.zeros((2, 5))
  expected[0, 4] = 1
  np.testing.assert_array_equal(actual, expected)


def test_the_threshold_is_a_metric(toy):
  """The least entropy that is kept; 0 where nothing is trained."""
  piece = weights.EntropyQuantile(fraction=0.5)
  for mask, expected in ((1.0, 0.7), (0.0, 0.0)):
    traj = toy.trajectories(
      np.full(ENTROPY.shape, mask), group_size=1, entropy_BT=ENTROPY
    )
    metrics = piece(LossContext({}, traj, jax.random.key(0))).metrics
    found = metrics['policy/entropy_threshold']
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_ties_stay_together(toy):
  """Rank 1 is shared: both are kept, so that row order cannot matter."""
  actual = evaluate(toy, 0.2, [[0.9, 0.5, 0.9, 0.3, 0.7]])
  np.testing.assert_array_equal(actual, [[1, 0, 1, 0, 0]])


def test_only_the_order_counts(toy):
  """E0: a growing function of the entropy chooses the same tokens."""
  np.testing.assert_array_equal(
    evaluate(toy, 0.5, np.exp(3 * ENTROPY) - 7), evaluate(toy, 0.5)
  )
