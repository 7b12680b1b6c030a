"""Collects what was seen of every method from the results of papers.

`experiments.tables.all_methods` shows it. noted.jsonl has what was measured in
runs whose lines were not kept: the difference, its paired 95% where there are
two seeds or more, and the file that has the numbers.
"""

import importlib
import pathlib

import numpy as np

from experiments.papers.worlds import (
  looped,
  looped_tables,
  profile,
  sweep,
)
from experiments.papers.worlds import tables as worlds_tables
from experiments.tables import intervals
from rl_jax.records import metrics

FOLDER = pathlib.Path(__file__).parent
RESULTS = FOLDER / 'results.jsonl'
NOTED = FOLDER / 'noted.jsonl'
NOT_MEASURED = 'not measured'
# Others are compared with them, and nothing is claimed of them: the worlds.
BASELINES = {'sft': 'preferences', 'reward_model': 'proxy'}
BASELINE = 'a baseline'
PAPERS = (
  'preferences',
  'proxy',
  'episodes',
)  # others whose tables.py has `seen`


def judged(
  lines: list[worlds_tables.Line],
) -> dict[str, list[profile.Seen]]:
  """Method -> what was seen of it, in the order of the worlds."""
  found: dict[str, list[profile.Seen]] = {}
  for world in (*sweep.COMPARED, *sweep.WORLDS):
    for name, one in worlds_tables.seen(lines, world).items():
      found.setdefault(name, []).append(one)
  for world in looped.WORLDS:
    for name, more in looped_tables.seen(lines, world).items():
      found.setdefault(name, []).extend(more)
  return found


def judged_elsewhere() -> dict[str, list[profile.Seen]]:
  """The same from the committed results of PAPERS."""
  found: dict[str, list[profile.Seen]] = {}
  for paper in PAPERS:
    own = importlib.import_module(f'experiments.papers.{paper}.tables')
    rows = metrics.read_jsonl(FOLDER.parent / paper / 'results.jsonl')
    for name, more in own.seen(rows).items():
      found.setdefault(name, []).extend(more)
  return found


def noted() -> dict[str, list[profile.Seen]]:
  """The same of NOTED; p-values were not kept, so intervals decide."""
  found: dict[str, list[profile.Seen]] = {}
  for row in metrics.read_jsonl(NOTED):
    low, high = row['interval'] or (np.nan, np.nan)
    p = 0.0 if low > 0 or high < 0 else 1.0
    gain = intervals.Comparison(*map(np.float64, (row['effect'], low, high, p)))
    one = profile.Seen(
      row['world'],
      f'{row["claim"]} (against {row["against"]})',
      row['metric'],
      gain,
      row['seeds'],
      worlds_tables.verdict(row['sign'], gain),
    )
    found.setdefault(row['method'], []).append(one)
  return found


def seen() -> dict[str, list[profile.Seen]]:
  """The three together, by method, in that order."""
  found = judged(metrics.read_jsonl(RESULTS))
  for source in (judged_elsewhere(), noted()):
    for name, more in source.items():
      found[name] = [*found.get(name, []), *more]
  return found
