"""Lines of influence: how they are written, and cells of tables."""

import json
import pathlib
from typing import Any

import jax

from experiments.flags import configuration
from experiments.papers.worlds import where
from experiments.reports import influence_run
from experiments.sweeps import runs as sweep_runs
from rl_jax.learning import influence as learning_influence
from rl_jax.measures import influence
from rl_jax.records import metrics

FILE = pathlib.Path(__file__).parent / 'influence.jsonl'
NIL = 'does not act here'
HEADER = ('against', 'cos', 'ratio', 'without a piece')
NUMBERS = (
  *('cos', 'ratio', 'tokens_stopped', 'rows_changed', 'groups_dropped'),
  'selection',
)
Line = dict[str, Any]


def of_a_run(world: str, setting: sweep_runs.Setting, iterations: int) -> Line:
  """The line of a method by `influence_run`, from its own short run."""
  name = setting['method']
  config = sweep_runs.Run(setting).config
  against = where.baseline_of(name)
  short = influence_run.configured(config, against, iterations)
  found = influence_run.measure(short)
  plain = configuration.load_method(against)
  paths = learning_influence.lacking(config.method, plain)
  pieces = {n: x for n, x in found['pieces'].items() if n in paths}
  return line(world, name, {**found, 'pieces': pieces})


def line(world: str, name: str, results: dict[str, Any]) -> Line:
  """`results` has NUMBERS, whether it acts, and by piece its cos and ratio."""

  def rounded(x):
    return round(float(x), 5)

  return {
    'world': world,
    'method': name,
    'against': where.baseline_of(name),
    **{n: rounded(results[n]) for n in NUMBERS},
    'acts': bool(results['acts']),
    'pieces': {
      path: [rounded(x['cos']), rounded(x['ratio'])]
      for path, x in results['pieces'].items()
    },
  }


def append(path: str, one: Line) -> None:
  """Adds a line to a JSONL file."""
  with open(path, 'a') as file:
    file.write(json.dumps(one) + '\n')
  jax.clear_caches()  # else the programs of a hundred methods accumulate


def of_world(world: str, file: pathlib.Path = FILE) -> dict[str, Line]:
  """Method -> its line."""
  rows = metrics.read_jsonl(file)
  return {row['method']: row for row in rows if row['world'] == world}


def acts(name: str, results: dict[str, Line]) -> bool:
  """Returns whether a method was measured to act; True without a line."""
  return name not in results or results[name]['acts']


def cells(line: Line | None) -> list[str]:
  """The cells of HEADER; empty without a line.

  The last: cosine and ratio by piece that the baseline lacks, against the
  method without it.
  """
  if line is None:
    return [''] * len(HEADER)
  pieces = []
  for path, (cos, ratio) in line['pieces'].items():
    piece = path.rpartition('.')[2]
    nil = abs(1 - cos) <= influence.TOLERANCE
    nil &= abs(1 - ratio) <= influence.TOLERANCE
    pieces.append(f'{piece} {NIL if nil else f"{cos:.3f} {ratio:.2f}"}')
  numbers = [f'{line["cos"]:.3f}', f'{line["ratio"]:.2f}']
  return [line['against'], *numbers, '; '.join(pieces)]
