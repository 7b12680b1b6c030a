"""Tables of the worlds from lines that `excerpt` wrote."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from experiments.papers.worlds import (
  entropy,
  influences,
  looped_tables,
  profile,
  sweep,
  trials,
)
from experiments.papers.worlds.judging import tuning_score, verdict
from experiments.tables import cells as cells_lib
from experiments.tables import intervals

# Name in lines and tables -> metric of the last evaluation.
METRICS = {
  'sampled': 'evaluation/avg_at_4',
  'greedy': 'evaluation/pass_at_1',
  'pass@4': 'evaluation/pass_at_4',
  'entropy': 'evaluation/entropy',
  'length': 'evaluation/sample_length',
}
ENTROPY_CONTROL = ('clip_cov', 'kl_cov')
# Methods that people ask about, with all that was measured of them.
PROFILE = (
  *('reinforce', 'ppo', 'gspo', 'clip_cov', 'kl_cov', 'pass_at_k_grpo'),
  *('tis_sequence', 'icepop', 'hapo', 'empo'),
)
Line = dict[str, Any]
Cells = list[list[str]]


def area(line: Line) -> float:
  """Mean reward of the responses up to equally many generated tokens.

  The reward is constant within an iteration, and after the last one.
  """
  place = line['setting']['config']
  limit = sweep.TOKENS.get(place, sweep.TOKENS[sweep.MAIN])
  token_I = np.diff(line['course']['tokens'], prepend=0)
  before_I = np.array(line['course']['tokens']) - token_I
  counted_I = np.clip(limit - before_I, 0, token_I).astype(float)
  counted_I[-1] += limit - counted_I.sum()
  return float(np.average(line['course']['reward'], weights=counted_I))


def is_tuning(line: Line) -> bool:
  """Returns whether the run only helps to choose a rate."""
  return line['setting']['seed'] in sweep.TUNING_SEEDS


def rates(lines: Iterable[Line], world: str) -> dict[str, dict[float, float]]:
  """Method -> rate -> mean score of its tuning runs."""
  found: dict[str, dict[float, list[float]]] = {}
  for line in of_world(lines, world):
    if is_tuning(line):
      setting = line['setting']
      scores = found.setdefault(setting['method'], {})
      scores.setdefault(setting[trials.RATE], []).append(tuning_score(line))

  def mean(scores):
    return {rate: float(np.mean(x)) for rate, x in scores.items()}

  return {method: mean(scores) for method, scores in found.items()}


def of_world(lines: Iterable[Line], world: str) -> list[Line]:
  """The runs of one world."""
  return [line for line in lines if line['setting']['config'] == world]


def by_seed(
  lines: Iterable[Line], metric: str, key: Callable[[Line], Any]
) -> dict[Any, dict[int, float]]:
  """key(line) -> seed -> number of the runs that did not fail."""
  found: dict[Any, dict[int, float]] = {}
  for line in lines:
    if 'failed' not in line:
      seeds = found.setdefault(key(line), {})
      number = area(line) if metric == 'area' else line['last'][metric]
      seeds[line['setting']['seed']] = number
  return found


def _method(line: Line) -> str:
  return line['setting']['method']


def compared(lines: Iterable[Line], world: str) -> list[Line]:
  """The runs of a comparison but the later ones: methods at their own rates."""
  runs = _at_their_rates(lines, world)
  return [line for line in runs if not sweep.batch_of(line)]


def later(lines: Iterable[Line], world: str, batch: str) -> list[Line]:
  """The runs of a batch of sweep.LATER."""
  runs = _at_their_rates(lines, world)
  return [line for line in runs if sweep.batch_of(line) == batch]


def _at_their_rates(lines, world):
  rate = sweep.rates_of(world)
  return [
    line
    for line in of_world(lines, world)
    if not is_tuning(line)
    and line['setting'][trials.RATE] == rate[_method(line)]
  ]


def judged_together(lines: Iterable[Line], world: str) -> list[list[Line]]:
  """Runs of a comparison in parts, each with its own correction.

  Two where a family has further seeds: the first seeds, and those; else one.
  Every batch of later runs is a separate part.
  """
  lines = list(lines)
  parts = [compared(lines, world)]
  batches = [later(lines, world, name) for name in sweep.LATER]
  of = sweep.WORLDS.get(world)
  if of is not None and of.further_seeds:
    (runs,) = parts
    first = [line for line in runs if line['setting']['seed'] < of.seeds]
    parts = [first, [line for line in runs if line not in first]]
  return [*parts, *(batch for batch in batches if batch)]


def leaderboard(lines: list[Line], world: str) -> Cells:
  """Methods, best first; those that do not act last, without rank."""
  lines, acting = compared(lines, world), influences.of_world(world)
  names = ('sampled', 'greedy', 'pass@4', 'area', 'entropy', 'length')
  found = {name: by_seed(lines, name, _method) for name in names}
  sampled = found['sampled']
  nil = {name for name in sampled if not influences.acts(name, acting)}
  ranked = {name: x for name, x in sampled.items() if name not in nil}
  gains = intervals.against(ranked, sweep.BASELINE)
  header = ['', 'method', 'family', 'rate', 'seeds', 'sampled', 'to GRPO']
  header += ['95% paired', cells_lib.ADJUSTED, *names[1:], *influences.HEADER]
  order = sorted(sampled, key=lambda n: (n in nil, -_mean_of(sampled[n])))
  table, rank = [header], 0
  for name in order:
    trial = sweep.COMPARED[world].methods[name]
    rank += name not in nil
    table.append(
      [
        influences.NIL if name in nil else str(rank),
        name,
        trial.family,
        f'{trial.rate:g}',
        str(len(sampled[name])),
        _text(sampled[name]),
        *cells_lib.comparison_text(gains.get(name)),
        *(_text(found[n][name]) for n in names[1:]),
        *influences.cells(acting.get(name)),
      ]
    )
  return table


def _mean_of(values: dict[int, float]) -> float:
  return float(np.mean(list(values.values())))


def claims(lines: list[Line], world: str) -> Cells:
  """The claims of papers against GRPO, and what was seen in the world."""
  table = [['method', 'claim', 'on', 'to GRPO', '95% paired', 'verdict']]
  for name, one in seen(lines, world).items():
    effect, interval, _ = cells_lib.comparison_text(one.comparison)
    row = [name, one.claim, one.metric, effect, interval, one.verdict]
    table.append(row)
  return table


def standing(runs: list[Line], world: str) -> Cells:
  """Methods of runs that are judged together, best first, against GRPO.

  Those that do not act are last, without rank and comparison.
  """
  found = {name: by_seed(runs, name, _method) for name in METRICS}
  first, *others = METRICS
  acting = influences.of_world(world)
  nil = {n for n in found[first] if not influences.acts(n, acting)}
  ranked = {n: x for n, x in found[first].items() if n not in nil}
  gains = intervals.against(ranked, sweep.BASELINE)
  table = [['', 'method', 'seeds', first, 'to GRPO', '95% paired']]
  table[0] += [cells_lib.ADJUSTED, *others, *influences.HEADER]
  order = sorted(
    found[first], key=lambda n: (n in nil, -_mean_of(found[first][n]))
  )
  for rank, name in enumerate(order, start=1):
    row = [influences.NIL if name in nil else str(rank), name]
    row += [str(len(found[first][name])), _text(found[first][name])]
    row += cells_lib.comparison_text(gains.get(name))
    row += [_text(found[n][name]) for n in others]
    table.append([*row, *influences.cells(acting.get(name))])
  return table


def _text(values: dict[int, float]) -> str:
  return f'{_mean_of(values):.3f}'


def against_grpo(
  runs: Iterable[Line], metric: str, world: str
) -> dict[str, dict[int, float]]:
  """`by_seed` by method; GRPO without a gradient stays at the start."""
  found = by_seed(runs, metric, _method)
  start = sweep.WORLDS[world].start_numbers if world in sweep.WORLDS else {}
  if start:
    seeds = {seed for values in found.values() for seed in values}
    found[sweep.BASELINE] = dict.fromkeys(sorted(seeds), start[metric])
  return found


def seen(lines: list[Line], world: str) -> dict[str, profile.Seen]:
  """Method -> its claim and what was found, in the order of the world.

  p-values are adjusted for the methods of a part that act, for each metric
  only; a method of two parts is judged in the last.
  """
  found = {}
  for runs in judged_together(lines, world):
    found |= _seen(runs, world)
  return found


def _seen(runs: list[Line], world: str) -> dict[str, profile.Seen]:
  """The same of runs that are judged together."""
  names = {_method(line) for line in runs}
  claimed = sweep.claims_of(world)
  claimed = {name: one for name, one in claimed.items() if name in names}
  acting, found = influences.of_world(world), {}
  for name, claim in claimed.items():
    numbers = against_grpo(runs, claim.metric, world)
    nil = not influences.acts(name, acting)
    rows = {
      n: x
      for n, x in numbers.items()
      if n in (name, sweep.BASELINE) or (not nil and influences.acts(n, acting))
    }
    gain = intervals.against(rows, sweep.BASELINE)[name]
    found[name] = profile.Seen(
      world,
      claim.text,
      claim.metric,
      gain,
      len(numbers[name]),
      influences.NIL if nil else verdict(claim.sign, gain),
    )
  return found


def tuning(lines: list[Line], world: str) -> Cells:
  """Scores of all rates; the best of a row is the method's."""
  found, methods = rates(lines, world), sweep.COMPARED[world].methods
  grid = sorted({rate for scores in found.values() for rate in scores})
  table = [['method', *(f'{rate:g}' for rate in grid), 'changes']]
  for name, scores in found.items():
    best = max(scores, key=scores.__getitem__)
    cells = []
    for rate in grid:
      text = f'{scores[rate]:.3f}' if rate in scores else ''
      cells.append(f'**{text}**' if rate == best else text)
    changes = methods[name].changes.items()
    words = [f'{path.split(".")[-1]} {value}' for path, value in changes]
    table.append([name, *cells, ', '.join(words)])
  return table


def world(lines: Sequence[Line], name: str) -> Cells:
  """All rates and methods of a world, by what its runs reached."""
  lines = of_world(lines, name)

  def key(line):
    return (_method(line), line['setting'][trials.RATE])

  names = (*METRICS, 'area')
  found = {metric: by_seed(lines, metric, key) for metric in names}
  acting = influences.of_world(name)
  table = [['method', 'rate', 'seeds', *names, *influences.HEADER]]
  for method, rate in found['sampled']:
    cells = [cell(found[n][method, rate].values()) for n in names]
    seeds = str(len(found['sampled'][method, rate]))
    shown = method
    if not influences.acts(method, acting):
      shown += f' ({influences.NIL})'
    cells += influences.cells(acting.get(method))
    table.append([shown, f'{rate:g}', seeds, *cells])
  return table


def cell(values: Iterable[float]) -> str:
  """'0.861 (0.850, 0.872)': mean, smallest and largest."""
  values = list(values)
  return f'{np.mean(values):.3f} ({min(values):.3f}, {max(values):.3f})'


def law(lines: list[Line], world: str) -> Cells:
  """R = -a exp(H) + b, of the world's LAWS."""
  return entropy.law(compared(lines, world), sweep.LAWS[world])


def entropy_claims(lines: list[Line], world: str) -> Cells:
  """Cui et al. (2025), claim by claim."""
  runs = compared(lines, world)
  found: dict[str, dict[str, list[str]]] = {}
  for metric, claim in (
    ('entropy', 'more entropy'),
    ('sampled', 'more accurate'),
  ):
    gains = intervals.against(by_seed(runs, metric, _method), sweep.BASELINE)
    for name in ENTROPY_CONTROL:
      if name in gains:
        effect, interval, _ = cells_lib.comparison_text(gains[name])
        cells = [effect, interval, verdict(1, gains[name])]
        found.setdefault(name, {})[f'{claim} than GRPO'] = cells
  grpo = [line for line in runs if _method(line) == sweep.BASELINE]
  return entropy.claims(grpo, found)


def profiles(lines: list[Line]) -> Cells:
  """PROFILE in all worlds with GRPO's runs, in points of sampled accuracy."""
  effects = {}
  for world in (*sweep.COMPARED, *sweep.WORLDS):
    effects[world] = {}
    for runs in judged_together(lines, world):
      numbers = against_grpo(runs, 'sampled', world)
      effects[world] |= intervals.against(numbers, sweep.BASELINE)
  return profile.profile(
    PROFILE, {world: found for world, found in effects.items() if found}
  )


def all_tables(lines: list[Line]) -> dict[str, Cells]:
  """Name of a table -> header and rows."""
  makers = {
    'tuning': tuning,
    'methods': leaderboard,
    'claims': claims,
  }
  laws = {'law': law, 'entropy': entropy_claims}
  survey, family, *_ = judged_together(lines, sweep.SURVEY)
  return {
    **{
      f'{name} in {place}': make(lines, place)
      for place in sweep.COMPARED
      for name, make in makers.items()
    },
    **{
      f'{name} in {place}': make(lines, place)
      for place in sweep.LAWS
      for name, make in laws.items()
    },
    f'methods in {sweep.SURVEY}': standing(survey, sweep.SURVEY),
    f'family in {sweep.SURVEY}': standing(family, sweep.SURVEY),
    **{
      f'{name} in {sweep.SURVEY}': standing(
        later(lines, sweep.SURVEY, name), sweep.SURVEY
      )
      for name in sweep.LATER
    },
    **{
      f'methods in {name}': standing(compared(lines, name), name)
      for name in sweep.RANKED
    },
    **{f'claims in {name}': claims(lines, name) for name in sweep.RANKED},
    **{
      name: world(lines, name) for name in sweep.WORLDS if name != sweep.SURVEY
    },
    **looped_tables.all_tables(lines),
    'profile': profiles(lines),
  }
