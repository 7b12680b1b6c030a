"""Labels of the steps of a response: Monte Carlo, a judge, and their consensus.

Source: Zhang et al., "The Lessons of Developing Process Reward Models in
Mathematical Reasoning", 2025 (read).
"""

from collections.abc import Sequence

import numpy as np

NO_ERROR = -1


def first_unreached(fractions: Sequence[float]) -> int:
  """The first step from after which no completion was right; -1: none."""
  zero = [i for i, x in enumerate(fractions) if x == 0]
  return zero[0] if zero else NO_ERROR


def hard_labels(first_error: int, count: int) -> list[float]:
  """1 before the first error, 0 from it on."""
  end = count if first_error == NO_ERROR else first_error
  return [float(i < end) for i in range(count)]


def agree(monte_carlo: int, judge: int) -> bool:
  """The consensus filter: both find the first error at the same step."""
  return monte_carlo == judge


def noisy(
  first_error: int, count: int, error_rate: float, rng: np.random.Generator
) -> int:
  """The first error by a judge that mistakes each step with that chance.

  A judge stops at the first step that it calls wrong.
  """
  mistaken = rng.uniform(size=count) < error_rate
  wrong = np.arange(count) == first_error
  found = np.flatnonzero(wrong ^ mistaken)
  return int(found[0]) if len(found) else NO_ERROR


def response_scores(steps: Sequence[float] | np.ndarray) -> dict[str, float]:
  """Scores of a response from those of its steps: product, least, last."""
  return {
    'product': float(np.prod(steps)),
    'min': float(np.min(steps)),
    'last': float(steps[-1]),
  }


def best_of(
  problems: Sequence[str],
  right: Sequence[bool],
  scores: Sequence[Sequence[float] | np.ndarray],
) -> dict[str, float]:
  """Share of right ones of the responses to each problem with the best score.

  best_product, best_min, best_last by response_scores, equal ones alike; mean
  and any of the same responses.
  """
  groups: dict[str, list[int]] = {}
  for row, problem in enumerate(problems):
    groups.setdefault(problem, []).append(row)
  reduced = [response_scores(x) for x in scores]
  found = {'mean': [], 'any': []} | {f'best_{k}': [] for k in reduced[0]}
  for rows in groups.values():
    own = np.asarray([float(right[row]) for row in rows])
    found['mean'].append(own.mean())
    found['any'].append(own.max())
    for name in reduced[0]:
      score = np.asarray([reduced[row][name] for row in rows])
      found[f'best_{name}'].append(own[score == score.max()].mean())
  return {name: float(np.mean(x)) for name, x in found.items()}
