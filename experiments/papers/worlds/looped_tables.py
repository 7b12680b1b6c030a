"""Tables of the worlds of `looped`, from lines that `excerpt` wrote."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from experiments.papers.worlds import (
  influences,
  judging,
  looped,
  profile,
)
from experiments.papers.worlds.trials import RATE
from experiments.tables import cells as cells_lib
from experiments.tables import intervals

Line = dict[str, Any]
Cells = list[list[str]]
Numbers = dict[str, dict[int, float]]  # method -> seed -> number


def runs(lines: Iterable[Line], world: str) -> list[Line]:
  """The runs of the comparison, without failed ones."""
  return [
    line
    for line in lines
    if line['setting']['config'] == world
    and line['setting']['seed'] != looped.TUNING_SEED
    and 'failed' not in line
  ]


def by_seed(lines: Iterable[Line], column: str) -> Numbers:
  """The column of every run that has it."""
  found: Numbers = {}
  for line in lines:
    if column in line['last']:
      seeds = found.setdefault(line['setting']['method'], {})
      seeds[line['setting']['seed']] = line['last'][column]
  return found


def methods(lines: list[Line], world: str) -> Cells:
  """Means over seeds, and of the start; influence as in other worlds."""
  of, own = looped.WORLDS[world], runs(lines, world)
  acting = influences.of_world(world)
  table = [['method', 'rate', 'seeds', *of.columns, *influences.HEADER]]
  of_baseline = [x for x in own if x['setting']['method'] == of.baseline]
  start = [_mean(of_baseline, 'first', name) for name in of.columns]
  start += [''] * len(influences.HEADER)
  table.append(['the start', '', '', *start])
  for method, rate in of.rates.items():
    rows = [line for line in own if line['setting']['method'] == method]
    cells = [_mean(rows, 'last', name) for name in of.columns]
    cells += influences.cells(acting.get(method))
    table.append([method, f'{rate:g}', str(len(rows)), *cells])
  return table


def _mean(rows, when, name):
  """The mean over all runs; empty where one of them lacks the number."""
  numbers = [row[when].get(name) for row in rows]
  known = all(x is not None for x in numbers)
  return f'{np.mean(numbers):.3f}' if known else ''


def tuning(lines: list[Line], world: str) -> Cells:
  """Scores by rate; the best of a row is the method's."""
  found, tried = tuned(lines, world), looped.WORLDS[world].tried
  table = [['method', *(f'{rate:g}' for rate in tried)]]
  for name, scores in found.items():
    best = max(scores, key=scores.__getitem__)
    texts = {rate: f'{score:.3f}' for rate, score in scores.items()}
    texts[best] = f'**{texts[best]}**'
    table.append([name, *(texts[rate] for rate in tried)])
  return table


def tuned(lines: Iterable[Line], world: str) -> dict[str, dict[float, float]]:
  """Method -> rate -> score of the run that tried it."""
  found: dict[str, dict[float, float]] = {}
  for line in lines:
    setting = line['setting']
    if setting['config'] == world and setting['seed'] == looped.TUNING_SEED:
      scores = found.setdefault(setting['method'], {})
      scores[setting[RATE]] = judging.tuning_score(line)
  return found


def claims(lines: list[Line], world: str) -> Cells:
  """Every claim against what it names or the baseline; GAP against 0."""
  table = [['method', 'claim', 'on', 'difference', '95% paired']]
  table[0] += [cells_lib.ADJUSTED, 'verdict']
  for name, found in seen(lines, world).items():
    for one in found:
      cells = cells_lib.comparison_text(one.comparison)
      table.append([name, one.claim, one.metric, *cells, one.verdict])
  return table


def seen(lines: list[Line], world: str) -> dict[str, list[profile.Seen]]:
  """Method -> its claims; p adjusted for the world's methods by column."""
  of, own = looped.WORLDS[world], runs(lines, world)
  acting = influences.of_world(world)
  found: dict[str, list[profile.Seen]] = {}
  for name, claimed in of.claims.items():
    for claim in claimed:
      numbers = by_seed(own, claim.metric)
      baseline = claim.against or of.baseline
      if claim.metric == looped.GAP:
        baseline = '0'
        numbers[baseline] = dict.fromkeys(numbers[name], 0.0)
      gain = intervals.against(numbers, baseline)[name]
      verdict = judging.verdict(claim.sign, gain)
      one = profile.Seen(
        world,
        f'{claim.text} (against {baseline})',
        claim.metric,
        gain,
        len(numbers[name]),
        verdict if influences.acts(name, acting) else influences.NIL,
      )
      found.setdefault(name, []).append(one)
  return found


def all_tables(lines: list[Line]) -> dict[str, Cells]:
  """Name of a table -> header and rows."""
  found = {}
  for name, of in looped.WORLDS.items():
    found[f'methods in {name}'] = methods(lines, name)
    found[f'claims in {name}'] = claims(lines, name)
    if of.tried:
      found[f'tuning in {name}'] = tuning(lines, name)
  return found
