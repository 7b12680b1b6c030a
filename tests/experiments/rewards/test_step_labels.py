"""Labels of steps and the best of several responses, by hand."""

import numpy as np
import pytest

from experiments.rewards import step_labels


def test_hard_labels_by_hand():
  """0 of 8 is wrong, 1 of 8 is right; what follows an error is wrong, too."""
  assert step_labels.first_unreached([1.0, 0.125, 0.0]) == 2
  assert step_labels.first_unreached([0.125]) == step_labels.NO_ERROR
  assert step_labels.hard_labels(1, 3) == [1.0, 0.0, 0.0]
  assert step_labels.hard_labels(step_labels.NO_ERROR, 2) == [1.0, 1.0]


def test_consensus_by_hand():
  """No error by Monte Carlo, step 3 by the judge: dropped."""
  assert not step_labels.agree(-1, 3)
  assert step_labels.agree(2, 2) and step_labels.agree(-1, -1)


def test_a_judge_without_errors_is_exact():
  """Reduction; one that is always wrong stops at the first right step."""
  rng = np.random.default_rng(0)
  for first in (-1, 0, 2):
    assert step_labels.noisy(first, 4, 0.0, rng) == first
  assert step_labels.noisy(0, 4, 1.0, rng) == 1
  assert step_labels.noisy(-1, 4, 1.0, rng) == 0
  wrong = [step_labels.noisy(-1, 3, 0.1, rng) >= 0 for _ in range(4000)]
  assert np.mean(wrong) == pytest.approx(1 - 0.9**3, abs=0.03)


def test_scores_of_a_response_by_hand():
  found = step_labels.response_scores([0.9, 0.4, 0.6, 0.2])
  assert found == pytest.approx({'product': 0.0432, 'min': 0.2, 'last': 0.2})


def test_best_of_by_hand():
  """Problem a: the product prefers the wrong response, the last step the right
  one; of problem b's equal ones half are right."""
  found = step_labels.best_of(
    ['a', 'b', 'a', 'b'],
    [True, True, False, False],
    [[0.2, 0.9], [0.5], [0.9, 0.8], [0.5]],
  )
  assert found == {
    'mean': 0.5,
    'any': 1.0,
    'best_product': 0.25,
    'best_min': 0.25,
    'best_last': 0.75,
  }
