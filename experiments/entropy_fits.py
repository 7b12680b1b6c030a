"""Fits of accuracy to entropy along training, and how well they predict."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

FIRST = 0.36  # share of training that the paper predicts the rest from

# Two coefficients each: accuracy = slope * feature + intercept.
FEATURES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
  'exp(H)': lambda entropy, step: np.exp(entropy),
  'H': lambda entropy, step: entropy,
  'log step': lambda entropy, step: np.log1p(step),
}


def course(rows: Sequence[dict[str, Any]]) -> dict[str, np.ndarray]:
  """Steps, sampled held-out entropy (nats) and accuracy of the evaluations."""
  rows = [row for row in rows if 'evaluation/entropy' in row]
  if len(rows) < 6:
    raise ValueError(f'{len(rows)} evaluations are too few for a fit')
  names = sorted(n for n in rows[0] if n.startswith('evaluation/avg_at_'))
  return {
    'step': np.array([row['step'] for row in rows], float),
    'entropy': np.array([row['evaluation/entropy'] for row in rows]),
    'accuracy': np.array([row[names[0]] for row in rows]),
  }


def line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
  """Least squares y = slope x + intercept."""
  slope, intercept = np.polyfit(x, y, 1)
  return float(slope), float(intercept)


def fit(found: dict[str, np.ndarray]) -> dict[str, float]:
  """a, b and R^2 of accuracy = -a exp(H) + b over the whole course."""
  x, y = np.exp(found['entropy']), found['accuracy']
  slope, intercept = line(x, y)
  rest = y - slope * x - intercept
  r2 = 1.0 - (rest**2).sum() / ((y - y.mean()) ** 2).sum()
  return {'a': -slope, 'b': intercept, 'R^2': float(r2)}


def prediction_errors(found: dict[str, np.ndarray]) -> dict[str, float]:
  """Root mean square error behind the first 36%, by feature."""
  first = max(3, int(np.ceil(FIRST * len(found['step']))))
  errors = {}
  for name, feature in FEATURES.items():
    x, y = feature(found['entropy'], found['step']), found['accuracy']
    slope, intercept = line(x[:first], y[:first])
    rest = y[first:] - slope * x[first:] - intercept
    errors[name] = float(np.sqrt(np.mean(rest**2)))
  return errors


def covariance_identity(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
  """Predicted change of entropy of an iteration against the measured one.

  The prediction, minus learning rate times covariance, is of the next row's
  change. correlation and slope of measured on predicted; sign: share of
  iterations in which both have the same one.
  """
  rows = [row for row in rows if 'policy/covariance' in row]
  predicted = np.array(
    [row['policy/entropy_change_predicted'] for row in rows[:-1]]
  )
  measured = np.array([row['policy/entropy_change'] for row in rows[1:]])
  return {
    'correlation': float(np.corrcoef(predicted, measured)[0, 1]),
    'slope': line(predicted, measured)[0],
    'sign': float(np.mean(np.sign(predicted) == np.sign(measured))),
  }
