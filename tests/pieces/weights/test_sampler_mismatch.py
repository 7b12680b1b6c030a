"""Weights against the mismatch of sampler and trainer, by hand."""

import jax
import numpy as np
import pytest

from rl_jax.pieces import weights
from rl_jax.pieces.roles import LossContext

TOKENS = np.array([[0.45, 0.55, 1.0, 4.9, 5.1]])
# Geometric means 2, 6, sqrt(.24) = .49 and sqrt(.3) = .548.
ROWS = np.array([[8.0, 0.5], [6.0, 6.0], [0.4, 0.6], [0.5, 0.6]])
# Log-ratios 1, -.2 and .3, .2.
SMALL = np.exp([[1.0, -0.2], [0.3, 0.2]])


def evaluate(toy, piece, ratio, mask=None):
  """(weights, metrics) where pi_old / pi_behaviour is `ratio`, pi_old 1 / e."""
  old = np.full(ratio.shape, -1.0)
  traj = toy.trajectories(
    np.ones(ratio.shape) if mask is None else mask,
    group_size=len(ratio),
    logp_old_BT=old,
    logp_behaviour_BT=old - np.log(ratio),
  )
  return piece(LossContext({}, traj, jax.random.key(0)))[:2]


def test_icepop_by_hand(toy):
  """Inside [.5, 5] the ratio itself, outside 0."""
  weight, metrics = evaluate(toy, weights.IcePop(), TOKENS)
  np.testing.assert_allclose(weight, [[0, 0.55, 1, 4.9, 0]], rtol=1e-5)
  np.testing.assert_array_equal(
    metrics['policy/dropped_fraction'], [[1, 0, 0, 0, 1]]
  )


def test_a_wide_interval_is_plain_importance_sampling(toy):
  """E1: nothing is dropped or cut."""
  weight, _ = evaluate(toy, weights.IcePop(low=0.0, high=100.0), TOKENS)
  np.testing.assert_allclose(weight, TOKENS, rtol=1e-5)


def test_rows_by_hand(toy):
  """Kept rows have their raw token weights, also beyond the interval."""
  weight, metrics = evaluate(toy, weights.SequenceMask(), ROWS)
  expected = [[8, 0.5], [0, 0], [0, 0], [0.5, 0.6]]
  np.testing.assert_allclose(weight, expected, rtol=1e-5)
  dropped = metrics['policy/dropped_fraction']
  np.testing.assert_array_equal(dropped, [[0, 0], [1, 1], [1, 1], [0, 0]])


def test_masked_tokens_do_not_enter_the_mean(toy):
  """Row 0 without its second token has mean 8 and is dropped."""
  mask = np.array([[1.0, 0], [1, 1], [1, 1], [1, 1]])
  weight, _ = evaluate(toy, weights.SequenceMask(), ROWS, mask)
  np.testing.assert_array_equal(weight[0], 0)


def test_the_order_of_tokens_does_not_matter(toy):
  """E1: reversed rows have reversed weights."""
  piece = weights.SequenceMask()
  reverse, _ = evaluate(toy, piece, ROWS[:, ::-1])
  np.testing.assert_allclose(reverse, evaluate(toy, piece, ROWS)[0][:, ::-1])


def test_truncated_tokens_by_hand(toy):
  """e is cut to 2; e^-.2 = .818731, e^.3 = 1.349859, e^.2 = 1.221403."""
  weight, metrics = evaluate(toy, weights.TruncatedImportance(), SMALL)
  np.testing.assert_allclose(
    weight, [[2, 0.818731], [1.349859, 1.221403]], rtol=1e-5
  )
  np.testing.assert_array_equal(
    metrics['policy/truncated_fraction'], [[1, 0], [0, 0]]
  )


def test_truncated_sequences_by_hand(toy):
  """Sums .8 and .5: e^.8 = 2.225541 is cut, e^.5 = 1.648721."""
  piece = weights.TruncatedImportance(level='sequence')
  weight, _ = evaluate(toy, piece, SMALL)
  np.testing.assert_allclose(weight, [[2, 2], [1.648721] * 2], rtol=1e-5)


def test_normalised_after_truncation(toy):
  """Over tokens: mean 5.389993 / 4. Over rows: mean 3.648721 / 2."""
  piece = weights.TruncatedImportance(normalize=True)
  np.testing.assert_allclose(
    evaluate(toy, piece, SMALL)[0][0, 0], 8 / 5.389993, rtol=1e-5
  )
  piece = weights.TruncatedImportance(level='sequence', normalize=True)
  weight, _ = evaluate(toy, piece, SMALL)
  np.testing.assert_allclose(weight[:, 0], [1.096275, 0.903725], rtol=1e-5)


# u = 0.2, -0.1 and 0.1, 0.1 of two rows: k2 = .02, .005, .005, .005 and
# k3 = .0214028, .0048374, .0051709, .0051709.
NEAR = np.exp([[0.2, -0.1], [0.1, 0.1]])


@pytest.mark.parametrize(
  'estimator, level, below, above',
  [
    ('k2', 'mean', 0.0124, 0.0126),
    ('k2', 'sum', 0.0249, 0.0251),
    ('k2', 'max', 0.0199, 0.0201),
    ('k3', 'mean', 0.0131, 0.0132),
    ('k3', 'sum', 0.0262, 0.0263),
    ('k3', 'max', 0.0214, 0.02141),
  ],
)
def test_divergence_of_rows_by_hand(toy, estimator, level, below, above):
  """Row 0 has .0125, .025, .02 of k2 and .0131201, .0262402, .0214028 of k3.

  Row 1 has less; kept tokens weigh 1.
  """
  fields = {'estimator': estimator, 'level': level}
  for limit, kept in ((below, 0), (above, 1)):
    piece = weights.DivergenceMask(limit=limit, **fields)
    weight, metrics = evaluate(toy, piece, NEAR)
    np.testing.assert_array_equal(weight, [[kept, kept], [1, 1]])
    np.testing.assert_array_equal(
      metrics['policy/rejected_fraction'], 1 - np.asarray(weight)
    )


def test_divergence_of_tokens_by_hand(toy):
  """At .005 k3 keeps the second token only, at .0052 all but the first."""
  for limit, expected in (
    (0.005, [[0, 1], [0, 0]]),
    (0.0052, [[0, 1], [1, 1]]),
  ):
    piece = weights.DivergenceMask(limit=limit, level='token')
    np.testing.assert_array_equal(evaluate(toy, piece, NEAR)[0], expected)


def test_divergence_without_limit_keeps_all(toy):
  """E0: the reduction to no mask; signs of u do not count for k2."""
  piece = weights.DivergenceMask(limit=1e9)
  np.testing.assert_array_equal(evaluate(toy, piece, ROWS)[0], 1.0)
  piece = weights.DivergenceMask(limit=0.0124, estimator='k2')
  found = evaluate(toy, piece, 1 / NEAR)[0]
  np.testing.assert_array_equal(found, evaluate(toy, piece, NEAR)[0])


def test_divergence_is_over_trained_tokens(toy):
  """E0: without its first token row 0 has k3 .0048374, and is kept."""
  mask = np.array([[0.0, 1], [1, 1]])
  weight, _ = evaluate(toy, weights.DivergenceMask(limit=0.006), NEAR, mask)
  np.testing.assert_array_equal(weight, mask)


@pytest.mark.parametrize(
  'piece',
  [
    weights.DivergenceMask(limit=1e-9),
    weights.DivergenceMask(limit=1e-9, estimator='k2', level='sum'),
    weights.DivergenceMask(limit=1e-9, level='max'),
    weights.DivergenceMask(limit=1e-9, level='token'),
    weights.IcePop(low=1.0, high=1.0),
    weights.SequenceMask(low=1.0, high=1.0),
    weights.TruncatedImportance(),
    weights.TruncatedImportance(normalize=True),
    weights.TruncatedImportance(level='sequence'),
    weights.TruncatedImportance(level='sequence', normalize=True),
  ],
)
def test_no_mismatch_is_no_weight(toy, piece):
  """E0: 1 on kept tokens, 0 on masked ones, whatever is there."""
  mask = np.array([[1.0, 1, 0], [1, 1, 1]])
  ratio = np.where(mask > 0, 1.0, 400.0)
  weight, _ = evaluate(toy, piece, ratio, mask)
  np.testing.assert_array_equal(weight, mask)
