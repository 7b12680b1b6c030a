"""The table of a recipe: what was published, and what was run here.

A number of ours is the last evaluation of runs at the scale of the paper: the
mean over seeds with its 95% interval, of one seed that over problems. A row
that was never run says so.
"""

from collections.abc import Mapping, Sequence
import re
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
    if name in recipe.left_out and {*printed} == {'-'}:
      continue  # a list has it with the reason
    if name not in recipe.rows:
      why = 'left out' if name in recipe.left_out else 'reference'
      if name in recipe.measured:
        why = f'`{recipe.measured[name]}`'
      table.append([name, 'published', *printed, '', why])
      continue
    table.append([name, 'published', *printed, '', ''])
    own = by_row.get(name, [])
    ours = [_ours(recipe, column, own) for column in recipe.columns]
    devices = ', '.join(dict.fromkeys(str(x['device']) for x in own))
    table.append([name, 'ours', *ours, devices, f'`{command(paper, name)}`'])
  return table


def command(paper: str, row: str) -> str:
  """Returns what trains a row at the scale of the paper."""
  return (
    f'python -m experiments.sweep --paper={paper} --scale=paper --rows={row} '
    f'--workdir=runs/{paper}'
  )


def _ours(recipe, column, lines) -> str:
  """The mean in percent and its interval; of one seed that over problems."""
  if not lines:
    return NOT_RUN
  averaged = {*(recipe.averaged or recipe.columns)}
  lost = averaged & {*recipe.missing}
  if column in recipe.missing or (column == recipe.average and lost):
    return 'no data'
  found = [_value(recipe, column, line['last']) for line in lines]
  values = 100 * np.asarray([value for value, _ in found])
  if np.isnan(values).all():  # the table is of another command
    return 'no data'
  low, high = intervals.mean_interval(values)
  if len(values) == 1:
    low, high = 100 * np.asarray(found[0][1])
  text = f'{values.mean():.1f}'
  return text if np.isnan(low) else f'{text} [{low:.1f}, {high:.1f}]'


def _value(recipe, column, last):
  """(metric, its interval over problems) of a column, or NaN."""
  nothing = (np.nan, np.nan)
  if column == recipe.average:
    return last.get(f'evaluation/average/{settings.AVERAGE}', np.nan), nothing
  known = recipe.evaluation.get(column)
  kind = known.options if known else ''
  if not kind:  # a miniature has fewer samples
    kind = r'avg_at_\d+' if recipe.samples(column) else 'pass_at_1'
  for name, value in last.items():
    if re.fullmatch(f'evaluation/{column}/{kind}', name):
      ends = tuple(last.get(f'{name}_{end}', np.nan) for end in ('low', 'high'))
      return value, ends
  return np.nan, nothing
