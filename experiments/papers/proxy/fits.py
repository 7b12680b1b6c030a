"""Fits of the rule's score to the divergence from the untrained policy."""

from collections.abc import Sequence
import math
from typing import NamedTuple

import numpy as np


class Fit(NamedTuple):
  """a and b of a form, the share of variance that it explains, its maximum.

  peak_kl: nats; infinite where the curve never falls.
  """

  a: float
  b: float
  r2: float
  peak_kl: float


def reinforcement(
  kl: Sequence[float], gold: Sequence[float], start: float
) -> Fit:
  """gold = start + d (a - b log d), d = sqrt(KL), by least squares.

  Its maximum is at log d = a / b - 1. Source: Gao et al., "Scaling Laws for
  Reward Model Overoptimization", 2022, the form of reinforcement learning.
  """
  d = np.sqrt(np.asarray(kl))
  a, b, r2 = _solved(d, -d * np.log(d), gold, start)
  with np.errstate(over='ignore'):  # a line has its maximum at infinity
    peak = float(np.exp(2.0 * (a / b - 1.0))) if b > 0 else math.inf
  return Fit(a, b, r2, peak)


def best_of_n(kl: Sequence[float], gold: Sequence[float], start: float) -> Fit:
  """gold = start + d (a - b d): the paper's form of best-of-n, at a / (2 b)."""
  d = np.sqrt(np.asarray(kl))
  a, b, r2 = _solved(d, -(d**2), gold, start)
  peak = (a / (2.0 * b)) ** 2 if b > 0 else math.inf
  return Fit(a, b, r2, peak)


def _solved(one, other, gold, start):
  y = np.asarray(gold) - start
  columns = np.stack([one, other], 1)
  (a, b), *_ = np.linalg.lstsq(columns, y, rcond=None)
  rest = y - columns @ np.array([a, b])
  spread = y - y.mean()
  return float(a), float(b), float(1.0 - (rest**2).sum() / (spread**2).sum())
