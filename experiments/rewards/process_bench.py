"""The rules of ProcessBench: where is the first wrong step?

Source: QwenLM/ProcessBench, code/run_eval.py (by a digest of the code).
"""

from collections.abc import Sequence

import numpy as np


def first_error(scores: Sequence[float] | np.ndarray, threshold: float) -> int:
  """The first step whose score lies below the threshold; -1: none."""
  below = [i for i, score in enumerate(scores) if score < threshold]
  return below[0] if below else -1


def f1(predicted: Sequence[int], label: Sequence[int]) -> dict[str, float]:
  """Accuracies on responses with an error and without, and 2 a b / (a + b).

  F1 is 0 where both accuracies are. NaN without responses of a kind.
  """
  label_N = np.asarray(label)
  same, wrong = np.asarray(predicted) == label_N, label_N >= 0

  def mean(x):
    return float(x.mean()) if x.size else float('nan')

  a, b = mean(same[wrong]), mean(same[~wrong])
  score = 0.0 if a + b == 0 else 2 * a * b / (a + b)
  return {'acc_error': a, 'acc_correct': b, 'f1': score}
