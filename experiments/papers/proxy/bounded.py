"""PAR and its siblings on one learned reward, from equal starts.

All are method=par or one of its variants, so that nothing but the form of the
reward differs; k is 4 per unit of the learned reward, which ends near 0.7.
Named before the runs: PAR has more of the rule at the end than each of them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from experiments.papers.worlds import tables as worlds_tables
from experiments.sweeps.runs import Setting
from experiments.tables import cells as cells_lib
from experiments.tables import intervals

_K = {'method.shaping.ReferenceSigmoid.k': 4.0}
PAR = 'PAR'
# Row of the table -> its changes.
ARMS: dict[str, Setting] = {
  PAR: {'method': 'par', **_K},
  'the reward itself': {'method': 'par@centred'},
  'tanh': {'method': 'par@tanh', **_K},
  'polynomial': {'method': 'par@polynomial', **_K},
  # 3 of the sigmoid's units, as in the paper.
  'SGFC': {
    'method': 'par@sgfc',
    **_K,
    'method.shaping.ReferenceSigmoid.shift': 0.75,
  },
  'LSC': {'method': 'par@lsc', **_K},
  'mean and deviation': {'method': 'par@meanstd'},
  'clipped': {'method': 'par@clip'},
  # Where the rule was largest, as the threshold of the constraint.
  'ceiling 0.55': {
    'method': 'par@scalar_ceiling',
    'method.shaping.ReferenceSigmoid.ceiling': 0.55,
  },
}
SEEDS = range(42, 47)
Line = dict[str, Any]


def settings(
  common: Setting, models: Callable[[int], list[str]]
) -> list[Setting]:
  """Seeds x arms; models: what --add says of a seed's reward model."""
  return [
    common | changes | {'seed': seed, 'add': models(seed)}
    for seed in SEEDS
    for changes in ARMS.values()
  ]


def by_arm(rows: Sequence[Line]) -> dict[str, dict[int, Line]]:
  """Row of the table -> seed -> line of a run that did not fail."""
  names = {changes['method']: name for name, changes in ARMS.items()}
  found: dict[str, dict[int, Line]] = {name: {} for name in ARMS}
  for row in rows:
    setting = row['setting']
    if 'failed' not in row and setting['seed'] in SEEDS:
      found[names[setting['method']]][setting['seed']] = row
  return {name: seeds for name, seeds in found.items() if seeds}


def table(rows: Sequence[Line]) -> list[list[str]]:
  """Means over seeds, and what the rule has at the end less PAR's."""
  arms = by_arm(rows)
  last = {
    name: {seed: line['course']['gold'][-1] for seed, line in seeds.items()}
    for name, seeds in arms.items()
  }
  gains = intervals.against(last, PAR)
  header = ['reward', 'seeds', 'largest rule', 'at the end', 'KL', 'learned']
  header += ['to PAR', '95% paired', cells_lib.ADJUSTED, "PAR's claim"]
  found = [header]
  for name, seeds in arms.items():
    courses = [line['course'] for line in seeds.values()]
    largest = np.mean([max(course['gold']) for course in courses])

    def end(key, form, courses=courses):
      return format(np.mean([course[key][-1] for course in courses]), form)

    verdict = worlds_tables.verdict(-1, gains[name]) if name in gains else ''
    found.append(
      [
        *(name, str(len(courses)), f'{largest:.3f}', end('gold', '.3f')),
        *(end('kl', '.1f'), end('learned', '.2f')),
        *cells_lib.comparison_text(gains.get(name)),
        verdict,
      ]
    )
  return found
