"""Tables of the proxy: the rule's score against the divergence."""

from collections.abc import Mapping, Sequence
import math
import pathlib
from typing import Any

import numpy as np

from experiments.papers.proxy import (
  again_tables,
  bounded,
  pair_tables,
  signed_ranks,
  sweep,
  token_tables,
)
from experiments.papers.worlds import profile
from experiments.papers.worlds import tables as worlds_tables
from experiments.tables import cells as cells_lib
from experiments.tables import intervals
from rl_jax.records import metrics

BEST_OF_N = pathlib.Path(__file__).parent / 'best_of_n.jsonl'
LEVELS = (0.5, 1.0, 2.0, 4.0, 8.0, 12.0)  # nats a response
COUNTS = (1, 4, 16, 64, 256)  # of best-of-n
Line = dict[str, Any]
Cells = list[list[str]]
BySeed = dict[int, Line]
Curve = tuple[Sequence[float], Sequence[float]]


def divergence(n: int) -> float:
  """log n - (n - 1) / n: KL of best-of-n at most, nats a response.

  Source: Stiennon et al., "Learning to summarize from human feedback", 2020.
  """
  return math.log(n) - (n - 1) / n


def by_arm(rows: Sequence[Line], table: str = 'first') -> dict[str, BySeed]:
  """Row of the table -> seed -> line of a run that did not fail.

  table: of sweep.table_of, 'first' or 'again'.
  """
  found: dict[str, BySeed] = {name: {} for name in sweep.ARMS}
  for row in rows:
    if 'failed' not in row and sweep.table_of(row) == table:
      setting = row['setting']
      found[sweep.arm(setting)][setting['seed']] = row
  return {name: seeds for name, seeds in found.items() if seeds}


def courses(rows: Sequence[Line]) -> Cells:
  """Largest and last score of the rule, and the divergence at both.

  `fall` is last less largest, whose 95% over seeds must lie below that of the
  run on the rule itself, where it is noise of the largest only.
  """
  arms = by_arm(rows)
  numbers = {name: _numbers(seeds) for name, seeds in arms.items()}

  def column(key):
    return {
      name: {seed: one[key] for seed, one in seeds.items()}
      for name, seeds in numbers.items()
    }

  gains = intervals.against(column('last'), sweep.NAIVE)
  falls = intervals.against(column('fall'), sweep.NAIVE)
  header = ['run', 'seeds', 'largest rule', 'KL there', 'last rule', 'KL']
  header += ['learned', 'fall', '95%', 'last to GRPO', '95% paired']
  header += [cells_lib.ADJUSTED, 'fall to GRPO', '95% paired']
  table = [header]
  for name, seeds in numbers.items():

    def mean(key, form='.2f', seeds=seeds):
      return format(np.mean([one[key] for one in seeds.values()]), form)

    fall_S = np.array([one['fall'] for one in seeds.values()])
    table.append(
      [
        name,
        str(len(seeds)),
        *(mean('largest', '.3f'), mean('kl_there', '.1f')),
        *(mean('last', '.3f'), mean('kl', '.1f')),
        '' if name == sweep.RULE else mean('learned'),
        mean('fall', '+.3f'),
        cells_lib.interval_text(*intervals.mean_interval(fall_S), '+.3f'),
        *cells_lib.comparison_text(gains.get(name)),
        *cells_lib.comparison_text(falls.get(name))[:2],
      ]
    )
  return table


def _numbers(seeds: BySeed) -> dict[int, dict[str, float]]:
  found = {}
  for seed, row in seeds.items():
    gold, kl = row['course']['gold'], row['course']['kl']
    best = int(np.argmax(gold))
    found[seed] = {
      'largest': gold[best],
      'kl_there': kl[best],
      'last': gold[-1],
      'kl': kl[-1],
      'fall': gold[-1] - gold[best],
      'learned': row['course'].get('learned', [np.nan])[-1],
    }
  return found


def seen(rows: Sequence[Line]) -> dict[str, list[profile.Seen]]:
  """Method -> its claim on the rule, and what was found.

  Of an arm of sweep.AGAIN what its fresh seeds say, if they are enough for an
  interval, of others those of `courses`, for whose rows p is adjusted.
  """
  last = {
    name: {seed: one['last'] for seed, one in _numbers(seeds).items()}
    for name, seeds in by_arm(rows).items()
  }
  gains = intervals.against(last, sweep.NAIVE)
  effects, counts = again_tables.effects(by_arm(rows, 'again'))
  found = {}
  for name, text in sweep.CLAIMS.items():
    again = counts.get(name, 0) >= signed_ranks.FEWEST
    effect = effects[name] if again else gains[name]
    seeds = counts[name] if again else len(last[name])
    verdict = worlds_tables.verdict(1, effect)
    found[sweep.ARMS[name][1]['method']] = [
      profile.Seen('proxy', text, 'rule at the end', effect, seeds, verdict)
    ]
  return found | pair_tables.seen(rows) | token_tables.seen(rows)


def at_levels(rows: Sequence[Line]) -> Cells:
  """The rule's score where a run first has a divergence of LEVELS.

  Linear between the windows; empty unless all seeds reach it.
  """
  curves = {
    name: [curve(row) for row in seeds.values()]
    for name, seeds in by_arm(rows).items()
  }
  kl = [divergence(n) for n in COUNTS]
  curves['best of n by the learned reward'] = [
    (kl, [one['gold'][str(n)] for n in COUNTS])
    for one in metrics.read_jsonl(BEST_OF_N)
  ]
  return levels_of(curves)


def curve(row: Line) -> Curve:
  """Divergences and scores of the rule along a run."""
  return row['course']['kl'], row['course']['gold']


def levels_of(curves: Mapping[str, Sequence[Curve]]) -> Cells:
  """A row for each name: means over its curves."""
  table = [['run', *(f'KL {level:g}' for level in LEVELS)]]
  for name, seeds in curves.items():
    cells = []
    for level in LEVELS:
      found = [at(level, *course) for course in seeds]
      known = [x for x in found if x is not None]
      whole = len(known) == len(found)
      cells.append(f'{np.mean(known):.3f}' if whole else '')
    table.append([name, *cells])
  return table


def at(
  level: float, kl: Sequence[float], gold: Sequence[float]
) -> float | None:
  """gold where kl first reaches the level; None if it never does."""
  after = next((i for i, x in enumerate(kl) if x >= level), None)
  if not after:  # never, or before the first window
    return None
  share = (level - kl[after - 1]) / (kl[after] - kl[after - 1])
  return gold[after - 1] + share * (gold[after] - gold[after - 1])


def best_of() -> Cells:
  """Best-of-n, over the seeds of its file."""
  lines = metrics.read_jsonl(BEST_OF_N)
  table = [['n', 'seeds', 'KL at most', 'learned', 'rule', '95%']]
  for n in COUNTS:
    of: Mapping[str, np.ndarray] = {
      name: np.array([one[name][str(n)] for one in lines])
      for name in ('learned', 'gold')
    }
    row = [str(n), str(len(lines)), f'{divergence(n):.1f}']
    row += [f'{of["learned"].mean():.2f}', f'{of["gold"].mean():.3f}']
    interval = intervals.mean_interval(of['gold'])
    table.append([*row, cells_lib.interval_text(*interval)])
  return table


def start() -> float:
  """The rule's score of the untrained policy."""
  lines = metrics.read_jsonl(BEST_OF_N)
  return float(np.mean([one['gold']['1'] for one in lines]))


def all_tables(rows: Sequence[Line]) -> dict[str, Cells]:
  """Name of a table -> header and rows."""
  again = by_arm(rows, 'again')
  of_pairs = {
    name: [curve(line) for line in seeds.values()]
    for name, seeds in pair_tables.by_method(rows).items()
  }
  return {
    'again': again_tables.table(again),
    'fits': again_tables.fitted(again, start()),
    'courses': courses(rows),
    'equal divergence': at_levels(rows),
    'best of n': best_of(),
    'pairs': pair_tables.courses(rows),
    'pairs at equal divergence': levels_of(of_pairs),
    'claims on pairs': pair_tables.claims(rows),
    'token rewards': token_tables.table(rows),
    'bounded rewards': bounded.table(rows),
  }
