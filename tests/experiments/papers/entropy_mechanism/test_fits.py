"""Fits on courses with known coefficients (exact up to float64 rounding)."""

import numpy as np
import pytest

from experiments.papers.entropy_mechanism import fits


def synthetic(count=25):
  """Entropy falls; accuracy is exactly 0.9 - 0.3 exp(entropy)."""
  entropy = np.linspace(1.0, 0.1, count)
  return {
    'step': [6 * i for i in range(count)],
    'tokens': [600 * i for i in range(count)],
    'entropy': list(entropy),
    'avg_at_8': list(0.9 - 0.3 * np.exp(entropy)),
  }


def test_the_law_is_found_and_predicts_what_follows():
  """R = -0.3 exp(H) + 0.9: no error by exp(H), some by H and by steps."""
  found = synthetic()
  fit = fits.fit(found)
  np.testing.assert_allclose(
    [fit['a'], fit['b'], fit['R^2 exp(H)']], [0.3, 0.9, 1.0], rtol=1e-9
  )
  errors = fits.prediction_errors(found)
  assert errors['exp(H)'] < 1e-9
  assert min(errors['H'], errors['log step']) > 0.01
  # Nine evaluations are fitted; the error of 'constant' is the later gain.
  y = np.array(found['avg_at_8'])
  rest = np.sqrt(np.mean((y[9:] - y[8]) ** 2))
  np.testing.assert_allclose(errors['constant'], rest, rtol=1e-9)


def metric_rows():
  """The evaluations are at steps 0, 2, 4, ...; changes follow predictions."""
  rows = []
  for step in range(13):
    row = {'step': step}
    if step:
      row['rollout/tokens_total'] = 100 * step
      row['policy/entropy_change_predicted'] = -0.1 * step
    if step > 1:
      row['policy/entropy_change'] = 2 * -0.1 * (step - 1) + 0.05
    if step % 2 == 0:
      row['evaluation/entropy'] = 3.0 - 0.02 * step * (step + 1)
      for name in ('pass_at_1', 'avg_at_8', 'pass_at_8', 'sample_length'):
        row[f'evaluation/{name}'] = 0.01 * step
    rows.append(row)
  return rows


def test_the_prediction_is_of_the_next_row():
  """Measured changes are 2 x + 0.05 of the row before: slope 2.

  Held-out entropy at step s has fallen by 0.02 s (s + 1), and the predictions
  sum to -0.05 s (s + 1), except that the last, which has no successor, counts
  -1.1 twice: the ratio is 3.12 / 7.7.
  """
  found = fits.course(metric_rows())
  assert found['tokens'] == [0, 200, 400, 600, 800, 1000, 1200]
  numbers = fits.covariance_identity(found)
  expected = {'correlation': 1.0, 'slope': 2.0, 'same sign': 1.0}
  expected['total ratio'] = 3.12 / 7.7
  for name, value in expected.items():
    np.testing.assert_allclose(numbers[name], value, rtol=1e-9, err_msg=name)
  assert numbers['window correlation'] > 0.99
  with pytest.raises(ValueError, match='4 evaluations are too few'):
    fits.course(metric_rows()[:7])


def test_equal_tokens_are_between_evaluations():
  """Linear between the two around it: 0.03 at 300 tokens."""
  found = fits.course(metric_rows())
  assert fits.at_tokens(found, 300)['pass_at_8'] == pytest.approx(0.03)
