"""Cells of tables over the runs of a sweep, and their output formats."""

from collections.abc import Mapping, Sequence
import csv
import io
import json

import numpy as np

from experiments.sweeps import courses
from experiments.tables import intervals

# Around a table in a Markdown file.
BEGIN, END = '<!-- table {}: begin -->', '<!-- table {}: end -->'
_LATEX = str.maketrans(
  {
    **{x: f'\\{x}' for x in '&%$#_{}'},
    '\\': r'\textbackslash{}',
    '~': r'\textasciitilde{}',
    '^': r'\textasciicircum{}',
  }
)
ADJUSTED = 'adjusted p'  # a row is separated from the baseline below 0.05
COMPARISON = (
  'method',
  'seeds',
  'mean reward',
  'to baseline',
  '95% paired',
  ADJUSTED,
  'final reward',
  'final entropy',
)
HEADER = (
  'setting',
  'seeds',
  'mean',
  '95%',
  'to baseline',
  '95% paired',
  ADJUSTED,
)


def row_names(rows: list[dict]) -> list[str]:
  """Name of each run: the settings that differ between runs, without seed.

  The method only if it identifies the row.
  """
  shared = set.intersection(
    *({(k, json.dumps(v)) for k, v in row['setting'].items()} for row in rows)
  )
  shared = {key for key, _ in shared} | {'seed'}
  names = [
    ' '.join(f'{k}={v}' for k, v in row['setting'].items() if k not in shared)
    or 'all'
    for row in rows
  ]
  methods = [row['setting'].get('method') for row in rows]
  if len(set(names)) > 1 and len(set(methods)) == len(set(names)):
    return [f'method={method}' for method in methods]
  return names


def seed_of(row: dict) -> int:
  """The seed of a run, 0 if its setting has none.

  Of --set=seed=0,1 it is a text, which pairs with no number of --seeds.
  """
  return int(row['setting'].get('seed', 0))


def by_setting(rows: list[dict], metric: str) -> dict[str, dict[int, float]]:
  """Row name -> seed -> value, of the runs that did not fail.

  Raises ValueError, listing the known metrics, if a row lacks it.
  """
  found: dict[str, dict[int, float]] = {}
  for name, row in zip(row_names(rows), rows, strict=True):
    if 'failed' in row:
      continue
    if metric not in row['last']:
      known = ', '.join(sorted(row['last']))
      raise ValueError(f'{row["name"]} has no {metric!r}; it has {known}')
    seeds = found.setdefault(name, {})
    seeds[seed_of(row)] = row['last'][metric]
  return found


def failures(rows: list[dict]) -> list[str]:
  """A line for each setting with failed runs, and the first reason."""
  return failure_lines(row_names(rows), rows)


def failure_lines(names: list[str], rows: list[dict]) -> list[str]:
  """'NAME: COUNT failed: REASON' for each name with failed runs."""
  found: dict[str, list[str]] = {}
  for name, row in zip(names, rows, strict=True):
    if 'failed' in row:
      found.setdefault(name, []).append(row['failed'])
  return [f'{name}: {len(why)} failed: {why[0]}' for name, why in found.items()]


def excerpt(rows: list[dict], metric: str | None = None) -> list[dict]:
  """The lines; of the last row only what `comparison` reads, and the metric."""
  kept = []
  for row in rows:
    last = row.get('last', {})
    small = {n: round(x, 5) for n, x in last.items() if n in courses.NAMES}
    small |= {metric: last[metric]} if metric in last else {}
    kept.append({**row, 'last': small})
  return kept


def comparison(
  rows: list[dict], baseline: str | None, mixed: Sequence[str] = ()
) -> list[list[str]]:
  """Reward and entropy after equally many samples, best first."""
  area, final, entropy = (
    by_setting(rows, metric)
    for metric in (courses.AREA, courses.FINAL, courses.ENTROPY)
  )
  if baseline not in area:
    raise ValueError(f'no row {baseline!r}. Known: {", ".join(area)}')
  table = [list(COMPARISON)]
  if mixed:
    table[0][0] += f' (MIXED: {"; ".join(mixed)})'
  ratios = intervals.against(area, baseline, intervals.ratio)

  def mean(name):
    return np.mean(_finite(area[name]) or -np.inf)

  for name in sorted(area, key=mean, reverse=True):

    def of(found, n=name):
      return _spread(np.array(_finite(found[n])))

    failed = len(area[name]) - len(_finite(area[name]))
    table.append(
      [
        name.removeprefix('method='),
        count(len(area[name]), failed),
        of(area),
        *comparison_text(ratios.get(name), '.0%'),
        of(final),
        of(entropy),
      ]
    )
  return table


def _finite(seeds: Mapping[int, float]) -> list[float]:
  """The values that are numbers."""
  return [value for value in seeds.values() if np.isfinite(value)]


def _spread(values: np.ndarray) -> str:
  """Mean, and standard deviation if there are two or more values."""
  if not len(values):
    return 'failed'
  deviation = f' ± {values.std(ddof=1):.3f}' if len(values) > 1 else ''
  return f'{values.mean():.3f}{deviation}'


def count(seeds: int, failed: int) -> str:
  """'5', or '5 (1 failed)'."""
  return f'{seeds} ({failed} failed)' if failed else str(seeds)


def interval_text(low: float, high: float, form: str = '.3f') -> str:
  """'[low, high]', or 'too few seeds' if they are not finite."""
  if not (np.isfinite(low) and np.isfinite(high)):
    return 'too few seeds'
  return f'[{low:{form}}, {high:{form}}]'


def comparison_text(
  comparison: intervals.Comparison | None, form: str = '+.3f'
) -> list[str]:
  """Effect, interval and adjusted p-value; empty cells if there is none."""
  if comparison is None:
    return ['', '', '']
  p = f'{comparison.p:.3f}' if np.isfinite(comparison.p) else ''
  interval = interval_text(comparison.low, comparison.high, form)
  return [f'{comparison.effect:{form}}', interval, p]


def lines(results, baseline, published, mixed=()) -> list[list[str]]:
  """Header and cells of the table; the header names what is mixed."""
  if baseline is not None and baseline not in results:
    raise ValueError(f'no row {baseline!r}. Known: {", ".join(results)}')
  header = list(HEADER)
  if mixed:
    header[0] += f' (MIXED: {"; ".join(mixed)})'
  if published is not None:
    header.insert(1, 'published')
  table = [header]
  differences = intervals.against(results, baseline)
  for name, seeds in results.items():
    values = np.array(_finite(seeds))
    failed = len(seeds) - len(values)
    mean = f'{values.mean():.3f}' if len(values) else 'failed'
    interval = interval_text(*intervals.mean_interval(values))
    cells = [name, count(len(seeds), failed), mean, interval]
    if published is not None:
      cells.insert(1, str(published.get(name, '')))
    cells += comparison_text(differences.get(name))
    table.append(cells)
  return table


def render(table: list[list[str]], form: str) -> str:
  """Markdown, CSV or a LaTeX tabular."""
  if form == 'csv':
    file = io.StringIO()
    csv.writer(file, lineterminator='\n').writerows(table)
    return file.getvalue()
  if form == 'markdown':
    rows = [f'| {" | ".join(cells)} |' for cells in table]
    rows.insert(1, '|' + '---|' * len(table[0]))
    return '\n'.join(rows) + '\n'
  rows = [
    ' & '.join(cell.translate(_LATEX) for cell in cells) + r' \\'
    for cells in table
  ]
  rows.insert(1, r'\hline')
  columns = 'l' + 'r' * (len(table[0]) - 1)
  body = '\n'.join(rows)
  return f'\\begin{{tabular}}{{{columns}}}\n{body}\n\\end{{tabular}}\n'


def with_tables(text: str, results: Mapping[str, list[list[str]]]) -> str:
  """The text with the tables replaced whose two markers it has."""
  for name, cells in results.items():
    begin, end = BEGIN.format(name), END.format(name)
    if begin in text:
      before, rest = text.split(begin)
      table = render(cells, 'markdown')
      text = f'{before}{begin}\n{table}{end}{rest.split(end)[1]}'
  return text
