"""The table of a recipe: what was published, and what was run here.

A number of ours is the last evaluation of a run at the scale of the paper, the
mean over seeds with its 95% interval; a row that was never run says so.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.flags import configuration
from experiments.papers import recipe as recipe_lib
from experiments.papers import settings
from experiments.sweeps import recipes
from experiments.sweeps import runs as sweep_runs
from experiments.tables import intervals

NOT_RUN = 'not run'
RUNS = 'recipe_runs.jsonl'  # of a paper's folder: lines of results.jsonl


def runs_of(paper: str, workdir: str = '') -> list[dict[str, Any]]:
  """The lines of runs: of a sweep's folder, else those that are committed."""
  if workdir:
    return sweep_runs.results(workdir)
  path = configuration.ROOT / 'experiments' / 'papers' / paper / RUNS
  return sweep_runs.read_lines(str(path))


def cells(
  paper: str, lines: Sequence[Mapping[str, Any]], scale: str = 'paper'
) -> list[list[str]]:
  """Header and rows: 'published / ours' by column, hardware, command."""
  recipe = recipe_lib.load(paper)
  by_row: dict[str, list[Mapping[str, Any]]] = {}
  for line in lines:
    name = recipes.row_name(paper, line['setting'], scale)
    if name is not None and 'failed' not in line:
      by_row.setdefault(name, []).append(line)
  table = [['row', 'from', *recipe.columns, 'hardware', 'command']]
  for name in recipe.table_rows:
    printed = [
      f'{recipe.published[name, column]:g}'
      if (name, column) in recipe.published
      else '-'
      for column in recipe.columns
    ]
    if name not in recipe.rows:
      why = 'left out' if name in recipe.left_out else 'reference'
      table.append([name, 'published', *printed, '', why])
      continue
    table.append([name, 'published', *printed, '', ''])
    own = by_row.get(name, [])
    ours = [_ours(recipe, column, own) for column in recipe.columns]
    devices = ', '.join(dict.fromkeys(str(x['device']) for x in own))
    table.append([name, 'ours', *ours, devices, f'`{command(paper, name)}`'])
  return table


def command(paper: str, row: str) -> str:
  """What trains a row at the scale of the paper."""
  return (
    f'python -m experiments.sweep --paper={paper} --scale=paper --rows={row} '
    f'--workdir=runs/{paper}'
  )


def _ours(recipe, column, lines) -> str:
  """Mean and half of the interval, in percent; of the average that of sets."""
  if not lines:
    return NOT_RUN
  if column in recipe.missing:
    return 'no data'
  names = list(recipe.evaluation) if column == recipe.average else [column]
  values = np.asarray(
    [
      100 * np.mean([_value(recipe, name, line['last']) for name in names])
      for line in lines
    ]
  )
  low, high = intervals.mean_interval(values)
  if np.isnan(low):
    return f'{values.mean():.1f}'
  return f'{values.mean():.1f} +- {(float(high) - float(low)) / 2:.1f}'


def _value(recipe, column, last):
  """The metric of a column; a run in miniature has fewer samples."""
  name = settings.metric(recipe.evaluation, column)
  if name in last:
    return last[name]
  start = name.rpartition('_')[0] if 'avg_at' in name else name
  found = [x for key, x in last.items() if key.startswith(start)]
  return found[0] if found else np.nan
