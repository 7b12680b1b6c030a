"""Summaries of the metrics of a run, up to a number of samples."""

import math
from typing import Any

from absl import logging
import numpy as np

AREA, FINAL, ENTROPY = 'course/reward', 'course/final_reward', 'course/entropy'

NAMES = (AREA, FINAL, ENTROPY)


def held_out(rows: list[dict[str, Any]]) -> dict[str, list[float]]:
  """Tokens generated until each evaluation, and greedy accuracy, rounded.

  Dynamic sampling draws more per iteration: compare at equal tokens.
  """
  known = [row for row in rows if 'evaluation/pass_at_1' in row]
  return {
    'tokens': [int(row.get('rollout/tokens_total', 0)) for row in known],
    'pass_at_1': [round(row['evaluation/pass_at_1'], 4) for row in known],
  }


def numbers(rows: list[dict[str, Any]], budget: int) -> dict[str, float]:
  """`summary`, NaN where there is none: what was trained is not lost by it."""
  try:
    return summary(rows, budget)
  except ValueError as error:
    logging.warning('%s is unknown: %s', ', '.join(NAMES), error)
    return dict.fromkeys(NAMES, math.nan)


def summary(rows: list[dict[str, Any]], budget: int) -> dict[str, float]:
  """Numbers that compare methods after equally many samples.

    course/reward        mean reward of all samples: the area under the curve
    course/final_reward  mean reward of the last tenth of the samples
    course/entropy       mean entropy of these, nats per token

  Of a method that draws several rounds per iteration (dynamic sampling, hints)
  only the iterations within the budget count.

  Args:
    rows: metrics of the iterations, in order.
    budget: generation rounds that count.

  Raises: ValueError if the first iteration drew more.
  """
  rows = [row for row in rows if 'rollout/reward' in row]  # step 0 evaluates
  rounds = np.array([row['rollout/rounds'] for row in rows], float)
  reward = np.array([row['rollout/reward'] for row in rows])
  so_far = np.cumsum(rounds)
  used = np.flatnonzero(so_far <= budget)
  if not len(used):
    raise ValueError(f'the first iteration drew more than {budget} rounds')
  late = used[so_far[used] > 0.9 * budget]
  late = late if len(late) else used[-1:]
  return {
    AREA: float(np.average(reward[used], weights=rounds[used])),
    FINAL: float(reward[late].mean()),
    ENTROPY: float(np.mean([rows[i]['policy/entropy'] for i in late])),
  }
