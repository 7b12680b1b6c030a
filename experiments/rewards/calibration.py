"""Whether scores of a reward model are logits of preferences.

p = sigmoid(s_right - s_wrong) is the probability that the model gives to the
label of a comparison. The confidence of its own choice is max(p, 1 - p), and it
is calibrated if choices of confidence c are right in the fraction c of cases.
"""

from collections.abc import Sequence

import numpy as np

BINS = 10  # of equal width, from 0.5 to 1


def of_gaps(gaps: Sequence[float]) -> dict[str, float]:
  """pairwise_accuracy, pairwise_nll and calibration_error of s_right - s_wrong.

    calibration_error = sum over bins of n_bin / n |mean confidence - accuracy|

  Equal scores are half right. nll is the mean of -log p, in nats.
  """
  gap = np.asarray(gaps, np.float64)
  right = 0.5 * (1 + np.sign(gap))
  confidence = 1 / (1 + np.exp(-np.abs(gap)))
  place = np.minimum(((confidence - 0.5) * 2 * BINS).astype(int), BINS - 1)
  differences = np.bincount(place, confidence - right, BINS)
  return {
    'pairwise_accuracy': float(right.mean()),
    'pairwise_nll': float(np.logaddexp(0, -gap).mean()),
    'calibration_error': float(np.abs(differences).sum() / len(gap)),
  }
