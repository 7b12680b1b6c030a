"""Writes LANDED.md: a line for every method, what is claimed and what was seen.

  python -m experiments.papers.worlds.landed

From the committed results of papers, the docstrings of configs/methods and
`where`. noted.jsonl has what was measured in runs whose lines were not kept:
the difference, its paired 95% where there are two seeds or more, and the file
that has the numbers.
"""

from collections.abc import Mapping, Sequence
import importlib
import pathlib

import numpy as np

from experiments.flags import configuration
from experiments.papers.worlds import (
  looped,
  looped_tables,
  profile,
  sweep,
  where,
)
from experiments.papers.worlds import tables as worlds_tables
from experiments.tables import cells as cells_lib
from experiments.tables import intervals, methods
from rl_jax.records import metrics

FOLDER = pathlib.Path(__file__).parent
PAGE, RESULTS = FOLDER / 'LANDED.md', FOLDER / 'results.jsonl'
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
HEAD = """# What was seen of every method

Written by `python -m experiments.papers.worlds.landed`, see README.md.

Of methods that were judged in a world: the claim, the difference to what it
names, else to GRPO (in preferences to DPO; in proxy of RPO to DPO, of RTO and
r_to_q to PPO) with its paired 95% over seeds, and whether it was seen: `seen`
is separated in the claimed direction, `contrary` in the other; two seeds see
nothing. Where the paper claims nothing of the kind, the verdict is `higher`,
`lower` or `not separated`. In `brief` all methods have one learning rate, the
best of those tuned in `stale`. One seed has no interval and tells nothing. Of
the others the headline of the paper, as the method's file gives it, and the
world in which a test shows that the method changes the gradient or the
rollouts; what they gain there is not measured. A baseline has nothing
to be compared with.

"""


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


def table(
  names: Sequence[str], seen: Mapping[str, Sequence[profile.Seen]]
) -> list[list[str]]:
  """A row for each method and world in which its claim was judged."""
  rows = [['method', 'claim', 'world', 'measured', 'seeds', 'verdict']]
  for name in names:
    for one in seen.get(name, ()):
      effect, interval, _ = cells_lib.comparison_text(one.found)
      measured = f'{one.metric} {effect} {interval}'
      row = [name, one.claim, one.world, measured, str(one.seeds), one.verdict]
      rows.append(row)
    if name not in seen:
      place = where.WHERE.get(name)
      world = place.world if place else where.NOWHERE[name].split(':')[0]
      verdict = BASELINE if name in BASELINES else NOT_MEASURED
      world = BASELINES.get(name, world)
      claim = methods.parts(name)['Headline'].removesuffix('.')
      claim = claim.replace('|', r'\|')
      rows.append([name, claim, world, '', '', verdict])
  return rows


def page() -> str:
  """Every method of configs/methods but GRPO, the baseline."""
  names = configuration.names('configs.methods')
  names = [name for name in names if name != sweep.BASELINE]
  found = judged(metrics.read_jsonl(RESULTS))
  for source in (judged_elsewhere(), noted()):
    for name, more in source.items():
      found[name] = [*found.get(name, []), *more]
  return HEAD + cells_lib.render(table(names, found), 'markdown')


def main(argv):
  """Writes the page."""
  del argv
  PAGE.write_text(page())
  print(PAGE)


if __name__ == '__main__':
  configuration.run(main)
