"""How strong the labels of comparisons are, by several reward models.

Source: "Secrets of RLHF in Large Language Models Part II: Reward Modeling",
2024 (by secondary summaries; its public trainer has none of this).
"""

import numpy as np


def strength(
  chosen_MN: np.ndarray, rejected_MN: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """(mean, standard deviation with ddof 0) over M models of the gaps, [N].

  Gaps are the score of the chosen response less that of the rejected one. A low
  mean says a wrong label, one near 0 an ambiguous pair.
  """
  gap_MN = chosen_MN - rejected_MN
  return gap_MN.mean(axis=0), gap_MN.std(axis=0)


def lowest(mean_N: np.ndarray, fraction: float) -> np.ndarray:
  """The pairs of that share with the lowest means, rounded; bool [N].

  Of equal means the earlier pairs.
  """
  count = round(fraction * len(mean_N))
  found = np.zeros(len(mean_N), bool)
  found[np.argsort(mean_N, kind='stable')[:count]] = True
  return found
