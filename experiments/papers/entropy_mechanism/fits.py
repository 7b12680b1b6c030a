"""Fits of accuracy to entropy along training, and their prediction errors."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

FIRST = 0.36  # share of training from which the paper predicts the rest

# Name in a course -> metric of evaluations, and of every iteration.
EVALUATIONS = {
  'pass_at_1': 'evaluation/pass_at_1',
  'avg_at_8': 'evaluation/avg_at_8',
  'pass_at_8': 'evaluation/pass_at_8',
  'entropy': 'evaluation/entropy',
  'sample_length': 'evaluation/sample_length',
}
ITERATIONS = {
  'predicted': 'policy/entropy_change_predicted',
  'measured': 'policy/entropy_change',
}

# Two coefficients each: accuracy = slope * feature + intercept.
FEATURES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
  'exp(H)': lambda entropy, step: np.exp(entropy),
  'H': lambda entropy, step: entropy,
  'log step': lambda entropy, step: np.log1p(step),
}

Course = Mapping[str, Sequence[float]]


def course(rows: Sequence[dict[str, Any]]) -> dict[str, list[float]]:
  """The numbers of a run that tables and figures read, rounded.

    step, tokens, pass_at_1, ...  of the evaluations, sampled ones at
                                  temperature 1; entropy in nats a token
    predicted                     change of entropy that iteration i should
                                  cause (minus learning rate times covariance)
    measured                      change that it caused, seen in iteration i + 1

  Raises ValueError for fewer than six evaluations.
  """
  evaluations = [row for row in rows if 'evaluation/entropy' in row]
  if len(evaluations) < 6:
    raise ValueError(f'{len(evaluations)} evaluations are too few for a fit')
  found: dict[str, list[float]] = {
    'step': [row['step'] for row in evaluations],
    'tokens': [int(row.get('rollout/tokens_total', 0)) for row in evaluations],
  }
  for name, metric in EVALUATIONS.items():
    found[name] = [round(row[metric], 4) for row in evaluations]
  trained = [row for row in rows if ITERATIONS['predicted'] in row]
  pairs = zip(trained[:-1], trained[1:], strict=True)
  found |= {'predicted': [], 'measured': []}
  for before, after in pairs:
    found['predicted'].append(_short(before[ITERATIONS['predicted']]))
    found['measured'].append(_short(after[ITERATIONS['measured']]))
  return found


def _short(value: float) -> float:
  return float(f'{value:.3g}')


def line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
  """Least squares y = slope x + intercept."""
  slope, intercept = np.polyfit(x, y, 1)
  return float(slope), float(intercept)


def _features(results: Course) -> dict[str, np.ndarray]:
  entropy, step = np.array(results['entropy']), np.array(results['step'], float)
  return {name: feature(entropy, step) for name, feature in FEATURES.items()}


def fit(results: Course) -> dict[str, float]:
  """a, b and R^2 of accuracy = -a exp(H) + b over the whole course.

  And R^2 of the other two-coefficient lines, for comparison.
  """
  y = np.array(results['avg_at_8'])
  r2, coefficients = {}, {}
  for name, x in _features(results).items():
    slope, intercept = line(x, y)
    rest = y - slope * x - intercept
    r2[name] = float(1.0 - (rest**2).sum() / ((y - y.mean()) ** 2).sum())
    if name == 'exp(H)':
      coefficients = {'a': -slope, 'b': intercept}
  return coefficients | {f'R^2 {name}': value for name, value in r2.items()}


def first_part(results: Course, share: float = FIRST) -> int:
  """Evaluations in the first share of training, at least three."""
  return max(3, int(np.ceil(share * len(results['step']))))


def prediction_errors(
  results: Course, share: float = FIRST
) -> dict[str, float]:
  """Root mean square error after the first share of training, by feature.

  'constant': error of predicting the last accuracy of the first part.
  """
  first, y = first_part(results, share), np.array(results['avg_at_8'])
  errors = {}
  for name, x in _features(results).items():
    slope, intercept = line(x[:first], y[:first])
    errors[name] = _rms(y[first:] - slope * x[first:] - intercept)
  return errors | {'constant': _rms(y[first:] - y[first - 1])}


def _rms(rest: np.ndarray) -> float:
  return float(np.sqrt(np.mean(rest**2)))


def covariance_identity(results: Course) -> dict[str, float]:
  """Predicted against measured change of entropy.

  correlation, slope  of measured on predicted, over iterations
  same sign           share of iterations in which both have the same sign
  window correlation  of the predictions summed between two evaluations with
                      the change of held-out entropy there, which has less
                      noise: the same prompts and draws every time
  total ratio         change of held-out entropy over the whole course, by
                      the sum of the predictions
  """
  predicted, measured = map(
    np.array, (results['predicted'], results['measured'])
  )
  step, entropy = np.array(results['step']), np.array(results['entropy'])
  # No evaluation follows the iteration of the repeated last prediction.
  sums = np.cumsum([0.0, *predicted, predicted[-1]])[step]
  windows, changes = np.diff(sums), np.diff(entropy)
  return {
    'correlation': float(np.corrcoef(predicted, measured)[0, 1]),
    'slope': line(predicted, measured)[0],
    'same sign': float(np.mean(np.sign(predicted) == np.sign(measured))),
    'window correlation': float(np.corrcoef(windows, changes)[0, 1]),
    'total ratio': float(changes.sum() / windows.sum()),
  }


def shares(results: Course) -> dict[str, float]:
  """Entropy and accuracy at the start, after 36% and at the end of training.

  The paper reports 73% of the entropy loss and 76% of the gain after 8%.
  """
  cut = first_part(results) - 1
  entropy, accuracy = results['entropy'], results['avg_at_8']
  return {
    'entropy at start': entropy[0],
    'at 36%': entropy[cut],
    'at end': entropy[-1],
    'accuracy at start': accuracy[0],
    'accuracy at 36%': accuracy[cut],
    'accuracy at end': accuracy[-1],
  }


def at_tokens(results: Course, tokens: float) -> dict[str, float]:
  """The evaluation after `tokens` generated tokens, interpolated."""
  return {
    name: float(np.interp(tokens, results['tokens'], results[name]))
    for name in EVALUATIONS
  }
