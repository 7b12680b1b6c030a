"""Cells of tables over the runs of a sweep, and their output formats."""

from collections.abc import Sequence
import csv
import io
import json

import numpy as np
import scipy.stats

from experiments.sweeps import courses

BOOTSTRAPS = 10_000
COMPARISON = (
  'method',
  'seeds',
  'mean reward',
  'to baseline',
  '95% paired',
  'final reward',
  'final entropy',
)
HEADER = ('setting', 'seeds', 'mean', '95%', 'to baseline', '95% paired')


def row_names(rows: list[dict]) -> list[str]:
  """Name of each run: the settings that differ between runs, without seed.

  The method alone if it identifies the row.
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
    seeds[row['setting'].get('seed', 0)] = row['last'][metric]
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


def excerpt(rows: list[dict]) -> list[dict]:
  """The lines; of the last row only what `comparison` reads."""
  return [
    {
      key: {n: round(x, 5) for n, x in value.items() if n in courses.NAMES}
      if key == 'last'
      else value
      for key, value in row.items()
    }
    for row in rows
  ]


def mean_interval(values: np.ndarray) -> tuple[float, float]:
  """95% interval of the mean by Student's t; NaN for a single value."""
  if len(values) < 2:
    return np.nan, np.nan
  half = scipy.stats.t.ppf(0.975, len(values) - 1) * scipy.stats.sem(values)
  return values.mean() - half, values.mean() + half


def _draws(count: int, seed: int) -> np.ndarray:
  """Bootstrap draws of `count` seeds, int[BOOTSTRAPS, count]."""
  rng = np.random.default_rng(seed)
  return rng.integers(count, size=(BOOTSTRAPS, count))


def paired_interval(difference: np.ndarray, seed: int = 0):
  """95% bootstrap interval of a mean difference over seeds."""
  if len(difference) < 2:
    return np.nan, np.nan
  means = difference[_draws(len(difference), seed)].mean(axis=1)
  return tuple(np.quantile(means, (0.025, 0.975)))


def paired_ratio(values: np.ndarray, base: np.ndarray, seed: int = 0):
  """mean(values) / mean(base) and its 95% bootstrap interval over seeds."""
  ratio = values.mean() / base.mean()
  if len(values) < 2:
    return ratio, np.nan, np.nan
  draws = _draws(len(values), seed)
  ratios = values[draws].mean(axis=1) / base[draws].mean(axis=1)
  return ratio, *np.quantile(ratios, (0.025, 0.975))


def comparison(
  rows: list[dict], baseline: str, mixed: Sequence[str] = ()
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
  order = sorted(area, key=lambda n: -np.mean(list(area[n].values())))
  for name in order:
    seeds = sorted(set(area[name]) & set(area[baseline]))
    cells = [name.removeprefix('method='), str(len(seeds))]
    of = lambda found, n=name, s=seeds: np.array([found[n][i] for i in s])
    base = np.array([area[baseline][i] for i in seeds])
    ratio, low, high = paired_ratio(of(area), base)
    interval = f'[{low:.0%}, {high:.0%}]' if seeds[1:] else 'too few seeds'
    cells += [_spread(of(area)), f'{ratio:.0%}', interval]
    table.append([*cells, _spread(of(final)), _spread(of(entropy))])
  return table


def _spread(values: np.ndarray) -> str:
  """Mean, and standard deviation if there are two or more values."""
  deviation = f' ± {values.std(ddof=1):.3f}' if len(values) > 1 else ''
  return f'{values.mean():.3f}{deviation}'


def interval_text(low: float, high: float, sign: str = '') -> str:
  """'[low, high]', or 'too few seeds' if they are not finite."""
  if not (np.isfinite(low) and np.isfinite(high)):
    return 'too few seeds'
  return f'[{low:{sign}.3f}, {high:{sign}.3f}]'


def lines(found, baseline, published, mixed=()) -> list[list[str]]:
  """Header and cells of the table; the header names what is mixed."""
  if baseline is not None and baseline not in found:
    raise ValueError(f'no row {baseline!r}. Known: {", ".join(found)}')
  header = list(HEADER)
  if mixed:
    header[0] += f' (MIXED: {"; ".join(mixed)})'
  if published is not None:
    header.insert(1, 'published')
  table = [header]
  for name, seeds in found.items():
    values = np.array(list(seeds.values()), float)
    values = values[np.isfinite(values)]
    failed = len(seeds) - len(values)
    count = f'{len(seeds)} ({failed} failed)' if failed else str(len(seeds))
    mean = f'{values.mean():.3f}' if len(values) else 'failed'
    cells = [name, count, mean, interval_text(*mean_interval(values))]
    if published is not None:
      cells.insert(1, str(published.get(name, '')))
    base = found.get(baseline, {})
    common = [
      seed
      for seed in sorted(set(seeds) & set(base))
      if np.isfinite(seeds[seed]) and np.isfinite(base[seed])
    ]
    if name == baseline or not common:
      cells += ['', '']
    else:
      difference = np.array([seeds[s] - base[s] for s in common])
      text = interval_text(*paired_interval(difference), sign='+')
      cells += [f'{difference.mean():+.3f}', text]
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
  escape = lambda x: x.replace('%', r'\%').replace('_', r'\_')
  rows = [' & '.join(map(escape, cells)) + r' \\' for cells in table]
  rows.insert(1, r'\hline')
  columns = 'l' + 'r' * (len(table[0]) - 1)
  body = '\n'.join(rows)
  return f'\\begin{{tabular}}{{{columns}}}\n{body}\n\\end{{tabular}}\n'
