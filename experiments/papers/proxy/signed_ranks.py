"""Wilcoxon's signed-rank test over seeds, with the interval that belongs to it.

For few seeds of which one may differ from the others by a multiple: a mean and
Student's t would be that seed's.
"""

import numpy as np
import scipy.stats

from experiments.tables import intervals

FEWEST = 6  # seeds of which an interval of 95% can be made


def one_sample(change_S: np.ndarray) -> intervals.Comparison:
  """The median of the S (S + 1) / 2 means of two changes, of one with itself.

  [low, high] are the k-th smallest and largest of them, with the largest k for
  which it holds the centre of a symmetric distribution in 95% of cases at
  least. p: exact, two-sided, of a centre of 0. NaN below FEWEST seeds, which
  can separate nothing.
  Source: Hodges and Lehmann, "Estimates of Location Based on Rank Tests", 1963.
  """
  change_S = np.asarray(change_S, float)
  count = len(change_S)
  means = (change_S[:, None] + change_S[None]) / 2
  means = np.sort(means[np.triu_indices(count)])
  if count < FEWEST:
    return intervals.Comparison(np.median(means), np.nan, np.nan, np.nan)
  tail = np.cumsum(_ways(count)) / 2.0**count  # P(rank sum <= 0, 1, ...)
  k = int((tail <= (1.0 - intervals.LEVEL) / 2).sum())
  p = scipy.stats.wilcoxon(change_S, method='exact').pvalue
  return intervals.Comparison(np.median(means), means[k - 1], means[-k], p)


def _ways(count: int) -> np.ndarray:
  """Subsets of 1 .. count for each sum from 0 on."""
  ways = np.ones(1)
  for rank in range(1, count + 1):
    ways = np.convolve(
      ways, np.eye(1, rank + 1)[0] + np.eye(1, rank + 1, rank)[0]
    )
  return ways
