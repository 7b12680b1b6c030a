"""The table of staleness from lines that worlds.excerpt wrote."""

from typing import Any

import numpy as np

from experiments.papers.staleness import sweep
from experiments.papers.worlds import tables as worlds_tables
from experiments.tables import cells as cells_lib
from experiments.tables import intervals

HEADER = ('method', 'behind', 'seeds', 'sampled', 'to 0', '95% paired')


def all_tables(lines: list[dict[str, Any]]) -> dict[str, list[list[str]]]:
  """Held-out accuracy of samples; `to 0`: against the same method on policy."""
  key = lambda line: (
    line['setting']['method'],
    line['setting'][sweep.STALENESS],
  )
  names = ('sampled', 'greedy', 'entropy', 'length')
  found = {n: worlds_tables.by_seed(lines, n, key) for n in names}
  mean = lambda n, k: f'{np.mean(list(found[n][k].values())):.3f}'
  table = [[*HEADER, *names[1:]]]
  for method in sweep.METHODS:
    own = {str(k[1]): x for k, x in found['sampled'].items() if k[0] == method}
    gains = intervals.against(own, '0')
    for behind in sorted(own, key=int):
      k = (method, int(behind))
      effect, interval, _ = cells_lib.comparison_text(gains.get(behind))
      row = [*map(str, k), str(len(own[k])), mean('sampled', k)]
      row += [effect, interval, *(mean(name, k) for name in names[1:])]
      table.append(row)
  return {'staleness': table}
