"""Conformal thresholds, sets and decisions."""

import numpy as np
import pytest

from rl_jax.measures import conformal

SCORES = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9])
RULES = (conformal.lac_scores, conformal.aps_scores)


def draws(rows, seed=0):
  """(probabilities [rows, 4], answers that are drawn from a power of them)."""
  rng = np.random.default_rng(seed)
  prob_nA = rng.dirichlet(np.full(4, 0.7), rows)
  true_nA = prob_nA**0.5 / (prob_nA**0.5).sum(1, keepdims=True)
  answer_n = (true_nA.cumsum(1) < rng.uniform(size=(rows, 1))).sum(1)
  return prob_nA, answer_n


@pytest.mark.parametrize(
  ('level', 'qhat'), [(0.85, 0.15), (0.1, 0.9), (0.025, 0.9)]
)
def test_threshold_by_hand(level, qhat):
  """Nine scores; (n + 1)(1 - a) = 1.5 is rank 2, 9 and 9.75 the last one."""
  assert conformal.threshold(SCORES, level) == qhat
  assert conformal.threshold(SCORES[::-1], level) == qhat


def test_too_few_rows_are_refused():
  """Nine rows guarantee .1, not .025."""
  conformal.check_size(9, 0.1)
  with pytest.raises(ValueError, match='9 calibration rows .* 0.025.*39'):
    conformal.check_size(9, 0.025)


def test_scores_and_sets_by_hand():
  """p = (.5, .3, .2): LAC has 1 - p, APS the mass down to the option."""
  prob_nA = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]])
  lac_nA, aps_nA = (scores(prob_nA) for scores in RULES)
  np.testing.assert_allclose(lac_nA, [[0.5, 0.7, 0.8], [0.8, 0.5, 0.7]])
  np.testing.assert_allclose(aps_nA, [[0.5, 0.8, 1.0], [1.0, 0.5, 0.8]])
  expected = [[True, True, False], [False, True, True]]
  np.testing.assert_array_equal(conformal.sets(lac_nA, 0.75), expected)
  np.testing.assert_array_equal(conformal.sets(aps_nA, 0.85), expected)
  answer_n = np.array([1, 0])
  np.testing.assert_allclose(conformal.of_answers(lac_nA, answer_n), [0.7, 0.8])
  smallest = [[True, False, False], [False, True, False]]
  np.testing.assert_array_equal(conformal.sets(lac_nA, 0.1), smallest)


def test_decision_weights_by_hand():
  """The weights of the specification for q1 = .1, q2 = .9."""
  found = conformal.decision_weights(np.array([0.05, 0.4, 0.95]), 0.1, 0.9)
  expected = [
    [0.562, 0.424, 0.014],
    [0.182, 0.742, 0.076],
    [0.014, 0.424, 0.562],
  ]
  np.testing.assert_allclose(found, expected, atol=6e-4)
  crossed = conformal.decision_weights(np.array([0.5]), 0.9, 0.1)
  assert crossed[0, conformal.SET] == pytest.approx(1e-6 / 1.761594, rel=1e-3)


def test_cost_by_hand():
  """.2 + .6 + .03 - .36 - .2 * .8979; only answering too often costs .1."""
  found = {
    'accuracy': 0.8,
    'size': 2.0,
    'abstained': 0.1,
    'one': 0.6,
    'set': 0.3,
  }
  assert conformal.cost(found) == pytest.approx(0.2904, abs=5e-5)
  sure = {
    'accuracy': 1.0,
    'size': 0.0,
    'abstained': 0.0,
    'one': 1.0,
    'set': 0.0,
  }
  assert conformal.cost(sure) == pytest.approx(-0.4 + 0.5 * 0.2)


def test_size_is_that_of_sets_alone():
  """One answer, the set {a, b}, none: accuracy is that of two rows."""
  prob_nA = np.array([[0.8, 0.1, 0.1], [0.5, 0.4, 0.1], [0.4, 0.3, 0.3]])
  decision_n = np.array([conformal.ONE, conformal.SET, conformal.NONE])
  found = conformal.outcomes(prob_nA, np.array([1, 1, 0]), 0.65, decision_n)
  assert found['size'] == 2.0 and found['accuracy'] == 0.5
  assert found['risk'] == 1.0
  assert found['abstained'] == found['one'] == found['set'] == 1 / 3


@pytest.mark.parametrize('scores', RULES)
def test_coverage_over_resplits(scores):
  """E3: 1 - a <= mean coverage of 1,000 resplits of a wrong model, and not much
  more: above by 2 / (n + 1) at most, but for rows whose set was empty.
  """
  level, n, rows = 0.2, 99, 300
  prob_nA, answer_n = draws(rows)
  score_nA = scores(prob_nA)
  right_n = conformal.of_answers(score_nA, answer_n)
  rng = np.random.default_rng(1)
  covered, exact = [], []
  for _ in range(1000):
    order = rng.permutation(rows)
    qhat = conformal.threshold(right_n[order[:n]], level)
    rest = order[n:]
    set_nA = conformal.sets(score_nA[rest], qhat)
    covered.append(conformal.of_answers(set_nA, answer_n[rest]).mean())
    exact.append((right_n[rest] <= qhat).mean())
  error = np.std(exact) / np.sqrt(len(exact))
  assert np.mean(exact) >= 1 - level - 3 * error
  assert np.mean(exact) <= 1 - level + 2 / (n + 1) + 3 * error
  assert np.mean(covered) >= np.mean(exact)


@pytest.mark.parametrize('scores', RULES)
def test_the_order_of_options_does_not_count(scores):
  """E0: sets of permuted options are permuted sets."""
  prob_nA, _ = draws(20)
  order = np.array([2, 0, 3, 1])
  found = conformal.sets(scores(prob_nA[:, order]), 0.6)
  expected = conformal.sets(scores(prob_nA), 0.6)[:, order]
  np.testing.assert_array_equal(found, expected)


def test_risk_coverage_by_hand():
  """The surest row is right, the next wrong, the last right."""
  coverage_n, risk_n = conformal.risk_coverage(
    np.array([0.2, 0.9, 0.5]), np.array([True, True, False])
  )
  np.testing.assert_allclose(coverage_n, [1 / 3, 2 / 3, 1])
  np.testing.assert_allclose(risk_n, [0, 1 / 2, 1 / 3])
