"""Win rates of the best, or the worst, of n samples of two policies."""

from collections.abc import Sequence
import math

import numpy as np


def chances(
  rewards: Sequence[float], n: int, worst: bool = False
) -> np.ndarray:
  """The chance of each sample to be the best of n that are drawn, [K].

  Drawn without replacement; of equal samples one later in the order counts, so
  sums over equal rewards are right. C(i - 1, n - 1) / C(K, n) for the i-th in
  rising order: no bias for new samples. worst: of the worst of n instead.

  Raises: ValueError if there are fewer than n samples.
  """
  K = len(rewards)
  if not 1 <= n <= K:
    raise ValueError(f'n = {n}, and a prompt has {K} samples')
  values = np.asarray(rewards, np.float64)
  order = np.argsort(-values if worst else values, kind='stable')
  found = np.empty(K)
  found[order] = [math.comb(i, n - 1) / math.comb(K, n) for i in range(K)]
  return found


def win_rate(
  own: Sequence[float], other: Sequence[float], n: int, worst: bool = False
) -> float:
  """P(best of n of own > best of n of other) + P(equal) / 2, of one prompt.

  Source: the inference-time win rate of "InfAlign: Inference-aware language
  model alignment"; worst=True is that of best-of-n jailbreaking.
  """
  sign = np.sign(np.subtract.outer(own, other))
  weights = chances(own, n, worst), chances(other, n, worst)
  return float(0.5 * (1 + weights[0] @ sign @ weights[1]))
