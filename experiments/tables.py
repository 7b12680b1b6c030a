"""Cells and forms of a table over the runs of a sweep."""

import csv
import io
import json

import numpy as np
import scipy.stats

BOOTSTRAPS = 10_000
HEADER = ('setting', 'seeds', 'mean', '95%', 'to baseline', '95% paired')


def by_setting(rows: list[dict], metric: str) -> dict[str, dict[int, float]]:
  """Row name -> seed -> value; what all runs share is no part of the name.

  Raises ValueError naming the metrics there are if one row lacks it.
  """
  shared = set.intersection(
    *({(k, json.dumps(v)) for k, v in row['setting'].items()} for row in rows)
  )
  shared = {key for key, _ in shared}
  found: dict[str, dict[int, float]] = {}
  for row in rows:
    if metric not in row['last']:
      known = ', '.join(sorted(row['last']))
      raise ValueError(f'{row["name"]} has no {metric!r}; it has {known}')
    fields = {
      k: v for k, v in row['setting'].items() if k != 'seed' and k not in shared
    }
    name = ' '.join(f'{k}={v}' for k, v in fields.items()) or 'all'
    seeds = found.setdefault(name, {})
    seeds[row['setting'].get('seed', 0)] = row['last'][metric]
  return found


def mean_interval(values: np.ndarray) -> tuple[float, float]:
  """95% interval of the mean by Student's t; NaN for a single value."""
  if len(values) < 2:
    return np.nan, np.nan
  half = scipy.stats.t.ppf(0.975, len(values) - 1) * scipy.stats.sem(values)
  return values.mean() - half, values.mean() + half


def paired_interval(difference: np.ndarray, seed: int = 0):
  """95% bootstrap interval of a mean difference over seeds."""
  if len(difference) < 2:
    return np.nan, np.nan
  rng = np.random.default_rng(seed)
  draws = rng.integers(len(difference), size=(BOOTSTRAPS, len(difference)))
  low, high = np.quantile(difference[draws].mean(axis=1), (0.025, 0.975))
  return low, high


def interval_text(low: float, high: float, sign: str = '') -> str:
  """'[low, high]', or that two seeds are needed for one."""
  if not (np.isfinite(low) and np.isfinite(high)):
    return 'too few seeds'
  return f'[{low:{sign}.3f}, {high:{sign}.3f}]'


def lines(found, baseline, published, mixed=()) -> list[list[str]]:
  """Header and cells of the table; what it mixes stands in the header."""
  if baseline is not None and baseline not in found:
    raise ValueError(f'no row {baseline!r}; there are {", ".join(found)}')
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
