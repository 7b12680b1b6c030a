"""The tables of preference methods, offline and online, and their claims."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.papers.preferences import sweep
from experiments.papers.worlds import profile
from experiments.papers.worlds import tables as worlds_tables
from experiments.tables import cells as cells_lib
from experiments.tables import intervals

COLUMNS = ('pairs', 'margin', 'chosen', 'rejected', 'greedy')
WORLD = 'preferences'
FIRST = (*sweep.OFFLINE, *sweep.ONLINE)
LATER = (sweep.BASELINE, *sweep.MORE)
Line = dict[str, Any]
Cells = list[list[str]]


def numbers(row: Line) -> dict[str, float]:
  """The columns of a line, and the difference of the log-probs."""
  last = row['last']
  return {**last, 'margin': last['chosen'] - last['rejected']}


def by_seed(
  rows: Iterable[Line], column: str, names: Iterable[str], noisy: bool = False
) -> dict[str, dict[int, float]]:
  """Method -> seed -> a column of the runs that did not fail.

  noisy: of the runs with turned labels, instead of those without.
  """
  found: dict[str, dict[int, float]] = {}
  for row in rows:
    wanted = (sweep.table_of(row) == 'noisy') == noisy
    if 'failed' not in row and wanted and row['setting']['method'] in names:
      setting = row['setting']
      seeds = found.setdefault(setting['method'], {})
      seeds[setting['seed']] = numbers(row)[column]
  return found


def methods(
  rows: Sequence[Line],
  names: Iterable[str],
  among: Iterable[str] = FIRST,
  noisy: bool = False,
  paired: str = 'greedy',
) -> Cells:
  """Means over seeds, and one column paired with DPO's.

  among: the methods for whose number p-values are adjusted. paired: the column.
  """
  found = {column: by_seed(rows, column, among, noisy) for column in COLUMNS}
  gains = intervals.against(found[paired], sweep.BASELINE)
  header = ['method', 'seeds', 'pair accuracy', 'margin', 'chosen', 'rejected']
  header += ['greedy', f'{paired} to DPO' if paired != 'greedy' else 'to DPO']
  header += ['95% paired', cells_lib.ADJUSTED]
  start = rows[0]['start'] | {'greedy': rows[0]['last']['greedy before']}
  table = [header, ['the start', '', *_cells(numbers({'last': start}))]]
  table[-1] += [''] * 3
  for name in names:
    if name in found['greedy']:
      mean = {
        c: float(np.mean(list(x[name].values()))) for c, x in found.items()
      }
      count = str(len(found['greedy'][name]))
      effect = cells_lib.comparison_text(gains.get(name))
      table.append([name, count, *_cells(mean), *effect])
  return table


def _cells(one: Mapping[str, float]) -> list[str]:
  forms = {'pairs': '.3f', 'greedy': '.3f'}
  return [format(one[name], forms.get(name, '+.2f')) for name in COLUMNS]


def seen(rows: Sequence[Line]) -> dict[str, list[profile.Seen]]:
  """Method -> its claims and what was found, p adjusted by metric and table."""
  noisy = {name: claim for name, (_, claim) in sweep.NOISY.items()}
  found: dict[str, list[profile.Seen]] = {}
  for claims, among, turned in (
    (sweep.OFFLINE | sweep.ONLINE, FIRST, False),
    (sweep.MORE, LATER, False),
    (noisy, noisy, True),
  ):
    for name, claim in claims.items():
      if claim is None:
        continue
      seeds = by_seed(rows, claim.metric, among, turned)
      gains = intervals.against(seeds, sweep.BASELINE)
      if name in gains:
        one = profile.Seen(
          WORLD + ', wrong labels' * turned,
          claim.text,
          claim.metric,
          gains[name],
          len(seeds[name]),
          worlds_tables.verdict(claim.sign, gains[name]),
        )
        found.setdefault(name, []).append(one)
  return found


def claims(rows: Sequence[Line]) -> Cells:
  """What a paper claims against DPO, and what was seen."""
  table = [['method', 'claim', 'on', 'to DPO', '95% paired', 'verdict']]
  for name, several in seen(rows).items():
    for one in several:
      effect, interval, _ = cells_lib.comparison_text(one.found)
      row = [name, one.claim, one.metric, effect, interval, one.verdict]
      table.append(row)
  return table


def all_tables(rows: Sequence[Line]) -> dict[str, Cells]:
  """Name of a table -> header and rows."""
  return {
    'offline': methods(rows, sweep.OFFLINE),
    'online': methods(rows, (sweep.BASELINE, *sweep.ONLINE)),
    'more': methods(rows, LATER, LATER),
    'noisy': methods(rows, sweep.NOISY, sweep.NOISY, True, 'pairs'),
    'claims': claims(rows),
  }
