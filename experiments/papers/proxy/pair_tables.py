"""Tables of losses on pairs: the rule at equal rows and at equal divergence."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.papers.proxy import pairs
from experiments.papers.worlds import profile
from experiments.papers.worlds import tables as worlds_tables
from experiments.tables import cells as cells_lib
from experiments.tables import intervals

Line = dict[str, Any]
Cells = list[list[str]]


def by_method(rows: Sequence[Line]) -> dict[str, dict[int, Line]]:
  """Method -> seed -> line of a run that did not fail."""
  found: dict[str, dict[int, Line]] = {name: {} for name in pairs.METHODS}
  for row in rows:
    setting = row['setting']
    if 'failed' not in row and setting['method'] in found:
      found[setting['method']][setting['seed']] = row
  return {name: seeds for name, seeds in found.items() if seeds}


def courses(rows: Sequence[Line]) -> Cells:
  """Means over seeds: at the checkpoint of the largest rule, and at the end."""
  gains = intervals.against(_values(rows, 'rule'), pairs.BASELINE)
  header = ['run', 'seeds', 'tokens', 'largest rule', 'KL there']
  header += ['rule at the end', 'KL', 'learned', 'margin', 'to DPO']
  found = [[*header, '95% paired', cells_lib.ADJUSTED]]
  for name, seeds in by_method(rows).items():
    lines = list(seeds.values())
    best = [int(np.argmax(line['course']['gold'])) for line in lines]

    def at(key, where, form, lines=lines):
      return format(
        np.mean(
          [x['course'][key][i] for x, i in zip(lines, where, strict=True)]
        ),
        form,
      )

    end = [-1] * len(lines)
    margin = ''
    if all('margin' in line for line in lines):
      margin = f'{np.mean([line["margin"] for line in lines]):+.1f}'
    found.append(
      [
        *(name, str(len(lines))),
        f'{np.mean([line["trained"] for line in lines]) / 1e3:.0f}k',
        *(at('gold', best, '.3f'), at('kl', best, '.1f')),
        *(at('gold', end, '.3f'), at('kl', end, '.1f')),
        *(at('learned', end, '.2f'), margin),
        *cells_lib.comparison_text(gains.get(name)),
      ]
    )
  return found


def claims(rows: Sequence[Line]) -> Cells:
  """The claims that were named before the runs; p adjusted by metric."""
  table = [['method', 'claim', 'on', 'found', '95% paired', 'seeds', 'verdict']]
  found = {name: one for name, (one,) in seen(rows).items()}
  fall = falls(rows)
  if fall is not None:
    found = {pairs.BASELINE: fall} | found
  for name, one in found.items():
    effect, interval, _ = cells_lib.comparison_text(one.comparison)
    row = [name, one.claim, one.metric, effect, interval, str(one.seeds)]
    table.append([*row, one.verdict])
  return table


def falls(rows: Sequence[Line]) -> profile.Seen | None:
  """The fall of the rule under DPO on data, from first reading to end."""
  lines = by_method(rows).get(pairs.BASELINE)
  if not lines:
    return None
  changes = []
  for line in lines.values():
    gold = line['course']['gold']
    # The course begins before the first iteration.
    first = 1 + pairs.steps(line['setting']).index(pairs.FIRST_READING)
    changes.append(gold[-1] - gold[first])
  effect = intervals.difference(np.array(changes), np.zeros(len(changes)))
  verdict = worlds_tables.verdict(-1, effect)
  text, metric = 'the rule falls as data are read again', 'rule, change'
  return profile.Seen('proxy', text, metric, effect, len(lines), verdict)


def seen(rows: Sequence[Line]) -> dict[str, list[profile.Seen]]:
  """Method -> its one claim against DPO on data, and what was found."""
  found = {}
  for name, claim in (pairs.OFFLINE | pairs.ONLINE).items():
    if claim is None:
      continue
    values = _values(rows, claim.metric)
    gains = intervals.against(values, pairs.BASELINE)
    if name in gains:
      verdict = worlds_tables.verdict(claim.sign, gains[name])
      what = (claim.text, claim.metric, gains[name], len(values[name]))
      found[name] = [profile.Seen('proxy', *what, verdict)]
  return found


def _values(rows, metric):
  one = {
    'rule': lambda line: line['course']['gold'][-1],
    'margin': lambda line: line.get('margin', np.nan),
  }[metric]
  return {
    name: {seed: one(line) for seed, line in seeds.items()}
    for name, seeds in by_method(rows).items()
  }
