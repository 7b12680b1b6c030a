"""The table of token rewards of a DPO policy, beside PPO of the same seeds."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.papers.proxy import sweep
from experiments.papers.worlds import profile
from experiments.papers.worlds import tables as worlds_tables
from experiments.tables import cells as cells_lib
from experiments.tables import intervals

Line = dict[str, Any]
Cells = list[list[str]]


def by_method(rows: Sequence[Line]) -> dict[str, dict[int, Line]]:
  """Method -> seed -> line of a run that did not fail; PPO of those seeds."""
  found: dict[str, dict[int, Line]] = {
    name: {} for name in ('ppo', *sweep.TOKEN_REWARDS)
  }
  for row in rows:
    setting = row['setting']
    if 'failed' not in row and setting['seed'] in sweep.TOKEN_SEEDS:
      method = setting['method']
      if method in found:
        found[method][setting['seed']] = row
  return {name: seeds for name, seeds in found.items() if seeds}


def table(rows: Sequence[Line]) -> Cells:
  """Means over seeds of the first, the middle and the last window."""
  gains = intervals.against(_last(rows), 'ppo')
  header = ['run', 'seeds', 'rule at first', 'in the middle', 'at the end']
  header += ['KL', 'learned', 'end to PPO', '95% paired', cells_lib.ADJUSTED]
  found = [header]
  for name, seeds in by_method(rows).items():
    courses = [line['course'] for line in seeds.values()]
    middle = len(courses[0]['gold']) // 2

    def mean(key, place, form, courses=courses):
      return format(np.mean([course[key][place] for course in courses]), form)

    found.append(
      [
        *(name, str(len(courses))),
        *(mean('gold', place, '.3f') for place in (0, middle, -1)),
        *(mean('kl', -1, '.1f'), mean('learned', -1, '.2f')),
        *cells_lib.comparison_text(gains.get(name)),
      ]
    )
  return found


def seen(rows: Sequence[Line]) -> dict[str, list[profile.Seen]]:
  """Method -> its claim on the rule at the end against PPO."""
  last = _last(rows)
  gains = intervals.against(last, 'ppo')
  found = {}
  for method, text in sweep.TOKEN_REWARDS.items():
    if method in gains:
      sign = None if text is None else 1
      verdict = worlds_tables.verdict(sign, gains[method])
      what = ('rule at the end', gains[method], len(last[method]), verdict)
      found[method] = [profile.Seen('proxy', text or 'none', *what)]
  return found


def _last(rows):
  return {
    name: {seed: line['course']['gold'][-1] for seed, line in seeds.items()}
    for name, seeds in by_method(rows).items()
  }
