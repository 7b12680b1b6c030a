"""Best policies of rewards that differ little."""

import numpy as np
import pytest

from experiments.rewards.policy_cliff import (
  ascend,
  best_policy,
  largest_change,
)


def variation(one, other):
  return 0.5 * np.abs(one - other).sum()


def policies(coef, eps):
  """Best policies over two answers: one has eps more, equal, and eps less."""
  return best_policy(np.array([[eps, 0.0], [0.0, 0.0], [-eps, 0.0]]), coef)


@pytest.mark.parametrize(
  'coef, eps, expected',
  [
    (0.01, 1e-3, 0.02498),  # sigmoid(eps / coef) - 1/2
    (0.1, 1e-3, 0.0025),
    (1.0, 1e-3, 0.00025),
    (0.01, 1e-2, 0.2311),
  ],
)
def test_smooth_with_entropy(coef, eps, expected):
  more, tied, less = policies(coef, eps)
  assert variation(more, tied) == pytest.approx(expected, rel=1e-3)
  assert variation(less, tied) == pytest.approx(expected, rel=1e-3)
  assert variation(more, tied) <= largest_change(coef, eps) / 2


def test_a_cliff_without():
  """However small the difference is; ties share the mass."""
  more, tied, less = policies(0.0, 1e-9)
  assert (more.tolist(), less.tolist()) == ([1.0, 0.0], [0.0, 1.0])
  assert tied.tolist() == [0.5, 0.5]
  assert variation(more, less) == largest_change(0.0, 1e-9) == 1.0


def test_the_bound_holds_for_any_rewards():
  """And no policy depends on a constant that all rewards share."""
  rng = np.random.default_rng(0)
  for coef in (0.03, 0.3):
    reward = rng.normal(size=(200, 5))
    other = reward + rng.uniform(-0.02, 0.02, reward.shape)
    one, two = best_policy(reward, coef), best_policy(other, coef)
    changes = 0.5 * np.abs(one - two).sum(1)
    assert changes.max() <= largest_change(coef, 0.02)
    np.testing.assert_allclose(best_policy(reward + 7, coef), one, rtol=1e-9)


def test_ascent_reaches_the_best_policy():
  """With entropy from anywhere; of tied rewards without, it keeps the ratio."""
  reward, start = np.array([[1.0, 0.9, 0.7]]), np.array([1.0, -1.0, 0.5])
  found = ascend(reward, 0.3, start, 1000)
  np.testing.assert_allclose(found, best_policy(reward, 0.3), atol=1e-4)
  equal = ascend(np.zeros((1, 3)), 0.0, start, 10)
  np.testing.assert_allclose(np.log(equal[0, 0] / equal[0, 1]), 2.0)
