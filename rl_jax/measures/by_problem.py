"""Accuracies of samples by problem, and their intervals."""

import math

import numpy as np
import scipy.stats

LEVEL = 0.95


def pass_at_k(num_samples: int, num_correct: int, k: int) -> float:
  """Unbiased estimate of P(at least one of k samples is correct).

  1 - C(n - c, k) / C(n, k)   (Chen et al. 2021, arXiv:2107.03374, eq. 1)
  """
  if not 1 <= k <= num_samples:
    raise ValueError(f'k = {k} is outside [1, {num_samples}]')
  wrong = num_samples - num_correct
  return 1.0 - math.comb(wrong, k) / math.comb(num_samples, k)


def powers(k: int) -> list[int]:
  """2, 4, ... below k, and k; none for k below 2."""
  found, j = [], 1
  while j < k:
    j = min(2 * j, k)
    found.append(j)
  return found


def passes(outcome_NK: np.ndarray) -> dict[int, np.ndarray]:
  """pass@j of each problem with j judged samples at least, by j in powers(k).

  outcome_NK: NaN of a sample that was not judged; above 1/2 it is right.
  """
  count_N = (outcome_NK > 0.5).sum(axis=1).tolist()
  judged_N = (~np.isnan(outcome_NK)).sum(axis=1).tolist()
  pairs = list(zip(judged_N, count_N, strict=True))
  return {
    j: np.asarray([pass_at_k(n, c, j) for n, c in pairs if n >= j])
    for j in powers(outcome_NK.shape[1])
  }


def intervals(outcome_NK: np.ndarray, samples: bool) -> dict[str, float]:
  """Ends NAME_low and NAME_high of the accuracies, as `interval` says.

  samples: outcomes are of drawn responses, avg_at_k and pass_at_j; else of one
  greedy response a problem, pass_at_1.
  """
  k = outcome_NK.shape[1]
  name = f'avg_at_{k}' if samples else 'pass_at_1'
  some_N = (~np.isnan(outcome_NK)).any(axis=1)
  values = {name: np.nanmean(outcome_NK[some_N], axis=1)}
  if samples:
    values |= {f'pass_at_{j}': x for j, x in passes(outcome_NK).items()}
  found = {}
  for name, value_N in values.items():
    low, high = interval(value_N)
    found |= {f'{name}_low': low, f'{name}_high': high}
  return found


def interval(value_N: np.ndarray) -> tuple[float, float]:
  """(low, high) of 95% of the mean of a value in [0, 1] of each problem.

    mean -+ t(N - 1) * deviation / sqrt(N), cut to [0, 1]

  The samples of a problem are not independent, so that the problem is the unit.
  Where all problems have the same value, 0 or 1, the deviation says nothing:
  the interval is then that of Clopper and Pearson for N problems. NaN with
  fewer than two problems.
  """
  count = len(value_N)
  if count < 2:
    return math.nan, math.nan
  mean, deviation = value_N.mean(), value_N.std(ddof=1)
  if deviation == 0.0 and mean in (0.0, 1.0):
    width = 1.0 - ((1.0 - LEVEL) / 2.0) ** (1.0 / count)
    return (1.0 - width, 1.0) if mean else (0.0, width)
  half = scipy.stats.t.ppf((1.0 + LEVEL) / 2.0, count - 1)
  half *= deviation / math.sqrt(count)
  return max(0.0, mean - half), min(1.0, mean + half)
