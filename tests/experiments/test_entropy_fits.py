"""Fits on courses whose answer is known."""

import numpy as np
import pytest

from experiments import entropy_fits


def evaluations(count=25):
  """Entropy falls; accuracy is exactly 0.9 - 0.3 exp(entropy)."""
  entropy = np.linspace(1.0, 0.1, count)
  return [
    {
      'step': 6 * i,
      'evaluation/entropy': h,
      'evaluation/avg_at_8': 0.9 - 0.3 * np.exp(h),
    }
    for i, h in enumerate(entropy)
  ]


def test_the_law_is_found_and_predicts_what_follows():
  """R = -0.3 exp(H) + 0.9: no error by exp(H), some by H and by steps."""
  found = entropy_fits.course([{'reward/mean': 0.0}, *evaluations()])
  fit = entropy_fits.fit(found)
  np.testing.assert_allclose(
    [fit['a'], fit['b'], fit['R^2']], [0.3, 0.9, 1.0], rtol=1e-9
  )
  errors = entropy_fits.prediction_errors(found)
  assert errors['exp(H)'] < 1e-9
  assert errors['H'] > 0.01 and errors['log step'] > 0.01
  with pytest.raises(ValueError, match='3 evaluations are too few'):
    entropy_fits.course(evaluations(3))


def test_the_prediction_is_of_the_next_row():
  """Changes are 2 x - 0.1 of the row before: slope 2, correlation 1."""
  predicted = [-0.3, -0.1, 0.2, 0.4, 0.0]
  measured = [np.nan] + [2 * x - 0.1 for x in predicted[:-1]]
  rows = [
    {
      'policy/covariance': -x,
      'policy/entropy_change_predicted': x,
      'policy/entropy_change': y,
    }
    for x, y in zip(predicted, measured, strict=True)
  ]
  found = entropy_fits.covariance_identity([{'step': 0}, *rows])
  np.testing.assert_allclose(list(found.values()), [1.0, 2.0, 1.0], rtol=1e-9)
