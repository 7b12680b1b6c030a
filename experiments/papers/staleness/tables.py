"""The table of staleness: each method and rate against itself on policy."""

from typing import Any

import numpy as np

from experiments.papers.staleness import sweep
from experiments.sweeps import courses
from experiments.tables import cells as cells_lib
from experiments.tables import intervals

HEADER = ('method', 'rate', 'lag', 'seeds', 'mean reward', 'to 0')


def all_tables(rows: list[dict[str, Any]]) -> dict[str, list[list[str]]]:
  """Rewards of all samples and of the last tenth, and their entropy.

  `to 0`: the difference in mean reward to staleness 0, paired by seed.
  """
  table = [[*HEADER, '95% paired', 'final reward', 'final entropy']]
  for setting in sweep.sweep_runs.product(
    {'method': sweep.METHODS, sweep.RATE: sweep.RATES}
  ):
    own = [row for row in rows if setting.items() <= row['setting'].items()]

    def by_seed(name, own=own):
      return _by_seed(own, name)

    area, final, entropy = map(
      by_seed, (courses.AREA, courses.FINAL, courses.ENTROPY)
    )
    gains = intervals.against(area, '0')

    def mean(seeds):
      return f'{np.mean(list(seeds.values())):.3f}'

    for behind, seeds in area.items():
      effect, interval, _ = cells_lib.comparison_text(gains.get(behind))
      cells = [setting['method'], f'{setting[sweep.RATE]:g}', behind]
      cells += [str(len(seeds)), mean(seeds), effect, interval]
      table.append([*cells, mean(final[behind]), mean(entropy[behind])])
  return {'staleness': table}


def _by_seed(rows, name):
  """Iterations of lag -> seed -> a number of the run."""
  found: dict[str, dict[int, float]] = {}
  for row in rows:
    seeds = found.setdefault(str(row['setting'][sweep.STALENESS]), {})
    seeds[row['setting']['seed']] = row['last'][name]
  return found
