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
BATCHES = ('noisy', 'third')
Line = dict[str, Any]
Cells = list[list[str]]


def numbers(row: Line) -> dict[str, float]:
  """The columns of a line, and the difference of the log-probs."""
  last = row['last']
  return {**last, 'margin': last['chosen'] - last['rejected']}


def by_seed(
  rows: Iterable[Line], column: str, names: Iterable[str], batch: str = ''
) -> dict[str, dict[int, float]]:
  """Method -> seed -> a column of the runs that did not fail.

  batch: 'noisy' or 'third' (see `sweep.table_of`); else the runs of neither.
  """
  found: dict[str, dict[int, float]] = {}
  for row in rows:
    one = sweep.table_of(row)
    wanted = (one if one in BATCHES else '') == batch
    if 'failed' not in row and wanted and row['setting']['method'] in names:
      setting = row['setting']
      seeds = found.setdefault(setting['method'], {})
      seeds[setting['seed']] = numbers(row)[column]
  return found


def methods(
  rows: Sequence[Line],
  names: Iterable[str],
  among: Iterable[str] = FIRST,
  batch: str = '',
  paired: str = 'greedy',
) -> Cells:
  """Means over seeds, and one column paired with DPO's.

  among: the methods for whose number p-values are adjusted. paired: the column.
  """
  found = {column: by_seed(rows, column, among, batch) for column in COLUMNS}
  gains = intervals.against(found[paired], sweep.BASELINE)
  header = ['method', 'seeds', 'pair accuracy', 'margin', 'chosen', 'rejected']
  header += ['greedy', f'{paired} to DPO' if paired != 'greedy' else 'to DPO']
  header += ['95% paired', cells_lib.ADJUSTED]
  own = [r for r in rows if batch in ('', sweep.table_of(r))]
  first = (own or rows)[0]
  start = first['start'] | {'greedy': first['last']['greedy before']}
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

  def claimed(batch):
    return {name: claim for name, (_, claim) in batch.items()}

  third = claimed(sweep.THIRD | sweep.THIRD_ONLINE)
  found: dict[str, list[profile.Seen]] = {}
  for claims, among, batch in (
    (sweep.OFFLINE | sweep.ONLINE, FIRST, ''),
    (sweep.MORE, LATER, ''),
    (claimed(sweep.NOISY), sweep.NOISY, 'noisy'),
    (third, third, 'third'),
  ):
    for name, claim in claims.items():
      if claim is None:
        continue
      baseline = claim.against
      rivals = among
      if baseline != sweep.BASELINE:
        rivals = [n for n, x in claims.items() if x and x.against == baseline]
        rivals.append(baseline)
      seeds = by_seed(rows, claim.metric, rivals, batch)
      gains = intervals.against(seeds, baseline) if baseline in seeds else {}
      if name in gains:
        one = profile.Seen(
          WORLD + ', wrong labels' * (batch == 'noisy'),
          claim.text,
          claim.metric,
          gains[name],
          len(seeds[name]),
          worlds_tables.verdict(claim.sign, gains[name]),
        )
        found.setdefault(name, []).append(one)
  return found


def claims(rows: Sequence[Line]) -> Cells:
  """The claims of papers, against DPO by default, and verdicts."""
  table = [['method', 'claim', 'on', 'difference', '95% paired', 'verdict']]
  for name, several in seen(rows).items():
    for one in several:
      effect, interval, _ = cells_lib.comparison_text(one.comparison)
      row = [name, one.claim, one.metric, effect, interval, one.verdict]
      table.append(row)
  return table


def all_tables(rows: Sequence[Line]) -> dict[str, Cells]:
  """Name of a table -> header and rows."""
  online = (sweep.BASELINE, *sweep.THIRD_ONLINE)
  third = (*sweep.THIRD, *sweep.THIRD_ONLINE)
  return {
    'offline': methods(rows, sweep.OFFLINE),
    'online': methods(rows, (sweep.BASELINE, *sweep.ONLINE)),
    'more': methods(rows, LATER, LATER),
    'third': methods(rows, sweep.THIRD, third, 'third'),
    'third online': methods(rows, online, third, 'third'),
    'noisy': methods(rows, sweep.NOISY, sweep.NOISY, 'noisy', 'pairs'),
    'claims': claims(rows),
  }
