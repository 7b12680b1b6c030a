"""A leaderboard: all methods at equal tokens, each with its own learning rate.

Every method runs with every learning rate of a grid and every seed. The rate of
a seed is the one with the best final accuracy over the *other* seeds, so that a
run does not influence the choice of its own rate; evaluation prompts are the
same for all. A failed run counts as accuracy 0 in this choice; in the table it
is counted as failed and not averaged.
"""

from collections.abc import Sequence
import json

import numpy as np

from experiments.sweeps import courses
from experiments.tables import cells as cells_lib
from experiments.tables import intervals

HEADER = (
  'method',
  'seeds',
  'learning rate',
  'final accuracy',
  '95% final',
  'area',
  '95% area',
  'to baseline',
  '95% paired',
  cells_lib.ADJUSTED,
  'final reward',
  'final entropy',
  's/iteration',
)
RATE = 'optimizer.learning_rate'
HINT = (
  'Greedy accuracy on held-out prompts after equally many generated tokens, '
  'and its mean until then (area). The learning rate of a seed is that with '
  'the best final accuracy over the other seeds. Intervals are 95% over seeds '
  '(Student); a row is separated from the baseline if its p, adjusted for the '
  'number of rows, is below 0.05. The head of a column sorts by it.'
)


def reading(row: dict, budget: float) -> tuple[float, float]:
  """(accuracy at `budget` tokens, its mean from 0 to there).

  The curve is linear between evaluations and constant after the last one. The
  area of a single point is NaN, as are both numbers of a failed run.
  """
  tokens = np.array(row.get('held_out', {}).get('tokens', ()), float)
  if 'failed' in row or not len(tokens):
    return np.nan, np.nan
  accuracy = np.array(row['held_out']['pass_at_1'])
  final = np.interp(budget, tokens, accuracy)
  if len(tokens) == 1:
    return final, np.nan
  inside = tokens < budget
  area = np.trapezoid([*accuracy[inside], final], [*tokens[inside], budget])
  return final, area / budget


def chosen(rows: list[dict], budget: float) -> list[dict]:
  """For each seed of a method, the run with the rate the other seeds prefer.

  A single seed has its own best rate.

  Raises ValueError if two runs differ in anything else.
  """
  final: dict[float | None, dict[int, float]] = {}
  run_of: dict[tuple[float | None, int], dict] = {}
  for row in rows:
    rate, seed = _rate(row), cells_lib.seed_of(row)
    _check_same(row, run_of.get((rate, seed), row))
    final.setdefault(rate, {})[seed] = np.nan_to_num(reading(row, budget)[0])
    run_of[rate, seed] = row
  seeds = sorted({seed for _, seed in run_of})
  found = []
  for seed in seeds:
    others = [other for other in seeds if other != seed] or [seed]

    def score(rate, others=others):
      return np.mean([final[rate].get(other, 0.0) for other in others])

    rates = [rate for rate in final if seed in final[rate]]
    found.append(run_of[max(rates, key=score), seed])
  return found


def _rate(row: dict) -> float | None:
  """The learning rate; of a grid from the command line it is a text."""
  rate = row['setting'].get(RATE)
  return None if rate is None else float(rate)


def _check_same(row: dict, other: dict) -> None:
  """Raises ValueError for runs of one method, rate and seed that differ."""
  for name in sorted({*row['setting'], *other['setting']} - {RATE, 'seed'}):
    values = [one['setting'].get(name) for one in (other, row)]
    if values[0] != values[1]:
      raise ValueError(
        f'a leaderboard compares methods, learning rates and seeds, but runs '
        f'of {row["setting"]["method"]} have {name} = {values[0]} and '
        f'{values[1]}: give each value its own sweep'
      )


def cells(
  rows: list[dict],
  baseline: str | None,
  budget: float,
  mixed: Sequence[str] = (),
) -> list[list[str]]:
  """Header and a row for every method, best final accuracy first.

  Raises ValueError, listing the methods, if the baseline is unknown.
  """
  methods: dict[str, list[dict]] = {}
  for row in rows:
    methods.setdefault(row['setting']['method'], []).append(row)
  if baseline not in methods:
    raise ValueError(f'no row {baseline!r}. Known: {", ".join(methods)}')
  best = {name: chosen(runs, budget) for name, runs in methods.items()}
  finals = {name: _finals(runs, budget) for name, runs in best.items()}
  differences = intervals.against(finals, baseline)
  header = list(HEADER)
  if mixed:
    header[0] += f' (MIXED: {"; ".join(mixed)})'

  def mean(name):
    return np.mean(list(finals[name].values()) or -1)

  order = sorted(best, key=mean, reverse=True)
  return [
    header,
    *(
      [name, *_cells(best[name], differences.get(name), budget)]
      for name in order
    ),
  ]


def _finals(runs: list[dict], budget: float) -> dict[int, float]:
  """Seed -> final accuracy of the runs that did not fail."""
  found = {cells_lib.seed_of(r): reading(r, budget)[0] for r in runs}
  return {seed: x for seed, x in found.items() if np.isfinite(x)}


def _cells(
  runs: list[dict], difference: intervals.Comparison | None, budget: float
) -> list[str]:
  """The columns after the name."""
  finals = _finals(runs, budget)
  good = [run for run in runs if cells_lib.seed_of(run) in finals]

  def last(name):
    return [run.get('last', {}).get(name, np.nan) for run in good]

  return [
    cells_lib.count(len(runs), len(runs) - len(good)),
    _rates(good),
    *_mean(list(finals.values())),
    *_mean([reading(run, budget)[1] for run in good]),
    *cells_lib.comparison_text(difference),
    _mean(last(courses.FINAL))[0],
    _mean(last(courses.ENTROPY))[0],
    _mean([run.get('iteration_seconds', np.nan) for run in good])[0],
  ]


def _mean(values: list[float]) -> list[str]:
  """Mean and interval of finite values; empty cells if there are none."""
  finite = np.array([x for x in values if np.isfinite(x)])
  if not len(finite):
    return ['', '']
  interval = cells_lib.interval_text(*intervals.mean_interval(finite))
  return [f'{finite.mean():.3f}', interval]


def _rates(runs: list[dict]) -> str:
  """'3e-4', or with the number of seeds of each: '3e-4 (4), 1e-3 (1)'."""
  rates = [rate for run in runs if (rate := _rate(run)) is not None]
  count = {rate: rates.count(rate) for rate in sorted(set(rates))}
  if len(count) == 1:
    return f'{next(iter(count)):g}'
  return ', '.join(f'{rate:g} ({n})' for rate, n in count.items())


def failures(rows: list[dict]) -> list[str]:
  """A line for each method with failed runs, and the first reason."""
  methods = [row['setting']['method'] for row in rows]
  return cells_lib.failure_lines(methods, rows)


def excerpt(rows: list[dict]) -> list[dict]:
  """Lines with only what `cells` and result_checks read.

  Settings that all rows share are left out; the sweep has them.
  """
  shared = set.intersection(
    *({(k, json.dumps(v)) for k, v in row['setting'].items()} for row in rows)
  )
  names = {name for name, _ in shared} - {'method', RATE, 'seed'}
  kept = []
  for row in rows:
    setting = {k: v for k, v in row['setting'].items() if k not in names}
    line = {**row, 'setting': setting}
    line['name'] = ' '.join(str(value) for value in setting.values())
    last = row.get('last', {})
    if last:
      line['last'] = {n: round(last[n], 4) for n in courses.NAMES if n in last}
    kept.append(line)
  return kept
