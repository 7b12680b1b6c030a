"""The choice of a rate, and the verdict on what a paper claims."""

from typing import Any

import numpy as np

from experiments.papers.worlds import sweep
from experiments.tables import intervals


def tuning_score(line: dict[str, Any]) -> float:
  """Mean reward of the last third of the iterations; 0 of a failed run."""
  if 'failed' in line:
    return 0.0
  rewards = line['course']['reward']
  return float(np.mean(rewards[-(len(rewards) // 3) :]))


def verdict(sign: int | None, comparison: intervals.Comparison) -> str:
  """seen: separated in the claimed direction; contrary: in the other.

  Of a claim to be not worse (0): seen unless separated below, and the interval
  ends above -TOLERABLE. Without a claim (None) what was found.
  """
  separated = comparison.p <= intervals.FALSE_DISCOVERIES
  if sign is None:
    words = 'higher' if comparison.effect > 0 else 'lower'
    return words if separated else 'not separated'
  if sign == 0:
    if separated and comparison.effect < 0:
      return 'contrary'
    return 'seen' if comparison.low > -sweep.TOLERABLE else 'not seen'
  if not separated:
    return 'not seen'
  return 'seen' if np.sign(comparison.effect) == sign else 'contrary'
