"""Tables of the entropy mechanism from lines with courses (see fits)."""

from collections.abc import Callable, Mapping, Sequence
import json
import os
from typing import Any

import numpy as np

from experiments.papers.entropy_mechanism import fits
from experiments.papers.entropy_mechanism.sweep import BASELINE, COMPARED
from experiments.tables import cells as cells_lib
from experiments.tables import intervals, result_checks
from rl_jax.records import metrics

AT_THE_END = ('pass_at_1', 'avg_at_8', 'pass_at_8', 'entropy', 'sample_length')
LAW = ('a', 'b', 'R^2 exp(H)', 'R^2 H', 'R^2 log step')
ERRORS = ('exp(H)', 'H', 'log step', 'constant')

Line = dict[str, Any]
Cells = list[list[str]]


def read(path: str, allow_mixed: bool = False) -> list[Line]:
  """Finished runs with their courses, of a sweep or an excerpt of one.

  Raises ValueError if there are none, and for mixed results.
  """
  sweep = not path.endswith('.jsonl')
  lines, _ = result_checks.read_rows(path, None, allow_mixed)
  if sweep:
    for line in lines:
      if 'failed' not in line:
        rows = metrics.read_jsonl(
          os.path.join(path, line['name'], metrics.METRICS)
        )
        line['course'] = fits.course(rows)
  return lines


def excerpt(lines: list[Line], path: str) -> None:
  """Writes the lines without their last row, small enough to commit."""
  with open(path, 'w') as file:
    for line in lines:
      kept = {
        key: value
        for key, value in line.items()
        if key not in ('last', 'held_out')
      }
      file.write(json.dumps(metrics.to_json(kept)) + '\n')


def place(setting: dict[str, Any]) -> str:
  """Task and size: 'arithmetic_small'."""
  return os.path.basename(setting['model.path']).removesuffix('_warm')


def row_name(setting: dict[str, Any]) -> str:
  """The method and its changed fields: 'kl_cov fraction=0.02'."""
  changes = [
    f'{key.split(".")[-1]}={value}'
    for key, value in setting.items()
    if key.startswith('method.') and key != 'method.group_filter'
  ]
  return ' '.join([setting['method'], *changes])


def grouped(
  lines: list[Line], key: Callable[[dict], str]
) -> dict[str, dict[int, dict]]:
  """Name -> seed -> course of the runs that did not fail."""
  found: dict[str, dict[int, dict]] = {}
  for line in lines:
    seeds = found.setdefault(key(line['setting']), {})
    if 'failed' not in line:
      seeds[line['setting']['seed']] = line['course']
  return found


def baselines(lines: list[Line]) -> dict[str, dict[int, dict]]:
  """GRPO without intervention, by place."""
  return grouped(
    [line for line in lines if row_name(line['setting']) == BASELINE],
    place,
  )


def compared(
  lines: list[Line], where: str = COMPARED[0]
) -> dict[str, dict[int, dict]]:
  """All rows at one place."""
  return grouped(
    [line for line in lines if place(line['setting']) == where], row_name
  )


def cell(values: list[float]) -> str:
  """Mean and 95% interval (Student's t over seeds)."""
  low, high = intervals.mean_interval(np.array(values))
  interval = cells_lib.interval_text(low, high)
  return f'{np.mean(values):.3f} {interval}'


def table(
  courses: Mapping[str, Mapping[int, dict]],
  numbers: Callable[[dict], Mapping[str, float]],
  first: str,
) -> Cells:
  """One row per name; numbers: course -> values of the columns."""
  lines: list[list[str]] = []
  for name, seeds in courses.items():
    found = [numbers(course) for course in seeds.values()]
    if not found:
      raise ValueError(f'{name}: all runs failed')
    if not lines:
      lines.append([first, 'seeds', *found[0]])
    cells = [cell([f[key] for f in found]) for key in found[0]]
    lines.append([name, str(len(found)), *cells])
  return lines


def prediction(course: dict) -> dict[str, float]:
  """Errors after the first 36%, and paired differences to exp(H)."""
  errors = fits.prediction_errors(course)
  gains = {
    f'exp(H) - {name}': errors['exp(H)'] - errors[name] for name in ERRORS[1:]
  }
  return {name: errors[name] for name in ERRORS} | gains


def ends(courses: Mapping[str, Mapping[int, dict]]) -> dict[str, dict]:
  """Name -> seed -> evaluation at the tokens that all runs generated."""
  budget = min(
    course['tokens'][-1]
    for seeds in courses.values()
    for course in seeds.values()
  )
  return {
    name: {
      seed: fits.at_tokens(course, budget) for seed, course in seeds.items()
    }
    for name, seeds in courses.items()
  }


def methods(courses: Mapping[str, Mapping[int, dict]]) -> Cells:
  """Evaluations at equal generated tokens: mean and interval."""
  return table(
    ends(courses), lambda end: {name: end[name] for name in AT_THE_END}, 'row'
  )


def differences(courses: Mapping[str, Mapping[int, dict]]) -> Cells:
  """Paired differences to GRPO; `*` where the row is separated from it.

  p-values are adjusted for the rows of the table, for each metric only.
  """
  found = ends(courses)
  columns = {
    metric: intervals.against(
      {
        name: {seed: end[metric] for seed, end in seeds.items()}
        for name, seeds in found.items()
      },
      BASELINE,
    )
    for metric in AT_THE_END
  }
  lines = [['row minus GRPO', 'pairs', *AT_THE_END]]
  for name in columns[AT_THE_END[0]]:
    cells = []
    for metric in AT_THE_END:
      one = columns[metric][name]
      mean, interval, _ = cells_lib.comparison_text(one)
      star = ' *' if one.p <= intervals.FALSE_DISCOVERIES else ''
      cells.append(f'{mean} {interval}{star}')
    count = len(set(found[name]) & set(found[BASELINE]))
    lines.append([name, str(count), *cells])
  return lines


def _law(course: dict, names: Sequence[str] = LAW) -> dict[str, float]:
  found = fits.fit(course)
  return {name: found[name] for name in names}


def all_tables(lines: list[Line]) -> dict[str, Cells]:
  """Name of a table -> header and rows."""
  grpo, rows = baselines(lines), compared(lines)
  others = {where: compared(lines, where) for where in COMPARED[1:]}
  return {
    'collapse': table(grpo, fits.shares, 'GRPO on'),
    'law': table(grpo, _law, 'GRPO on'),
    'prediction': table(grpo, prediction, 'GRPO on'),
    'covariance': table(grpo, fits.covariance_identity, 'GRPO on'),
    'methods': methods(rows),
    'differences': differences(rows),
    'coefficients': table(rows, lambda c: _law(c, LAW[:3]), 'row'),
    **{f'methods on {where}': methods(x) for where, x in others.items()},
    **{
      f'differences on {where}': differences(x) for where, x in others.items()
    },
  }
