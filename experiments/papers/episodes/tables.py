"""Tables of the episodes from lines that `excerpt` wrote."""

import pathlib
from typing import Any

import numpy as np

from experiments.papers.episodes import acting, sweep
from experiments.papers.worlds import influences, profile
from experiments.papers.worlds import tables as worlds_tables
from experiments.tables import cells as cells_lib
from experiments.tables import intervals

INFLUENCE = pathlib.Path(__file__).parent / 'influence.jsonl'
HEADER = ('row', 'claim', 'world', 'metric', 'seeds', 'mean', 'of the other')
# (values by seed, those of the other one, their difference).
Measured = tuple[np.ndarray, np.ndarray, intervals.Comparison]


def all_tables(lines: list[dict[str, Any]]) -> dict[str, list[list[str]]]:
  """Name of a table -> header and rows."""
  runs = by_world(lines)
  return {'rows': rows(runs), 'influence': influence()} | {
    f'comparison in {name}': cells_lib.comparison(
      runs[name], f'method={sweep.WORLDS[name].methods[0]}'
    )
    for name in ('dense', 'sparse', 'tools')
  }


def influence() -> list[list[str]]:
  """The influence of methods on the gradient in the worlds of their claims."""
  table = [['world', 'method', *influences.HEADER]]
  for world, names in acting.WORLDS.items():
    found = influences.of_world(world, INFLUENCE)
    for name in names:
      table.append([world, name, *influences.cells(found.get(name))])
  return table


def by_world(
  lines: list[dict[str, Any]],
) -> dict[str, list[dict[str, Any]]]:
  """World -> its lines."""
  return {
    name: [line for line in lines if sweep.world_of(line) == name]
    for name in sweep.WORLDS
  }


def rows(runs: dict[str, list[dict[str, Any]]]) -> list[list[str]]:
  """A line for each claim."""
  table = [[*HEADER, 'difference', '95% paired', cells_lib.ADJUSTED, 'verdict']]
  for claim, (one_S, other_S, gain) in judged(runs):
    less = f' less {claim.base}' * bool(claim.base)
    table.append(
      [
        claim.source,
        claim.text,
        f'{claim.one[1]}{less} in {claim.one[0]}; against {_against(claim)}',
        claim.metric,
        str(len(one_S)),
        f'{one_S.mean():.3f}',
        f'{other_S.mean():.3f}',
        *cells_lib.comparison_text(gain),
        worlds_tables.verdict(claim.sign, gain),
      ]
    )
  return table


def seen(lines: list[dict[str, Any]]) -> dict[str, list[profile.Seen]]:
  """Method -> claims of it and of its variants, with what they are against."""
  found: dict[str, list[profile.Seen]] = {}
  for claim, (one_S, _, gain) in judged(by_world(lines)):
    world, name = claim.one
    method, _, variant = name.partition('@')
    own = f'@{variant}: ' * bool(variant)
    one = profile.Seen(
      world,
      f'{own}{claim.text} (against {_against(claim)})',
      claim.metric,
      gain,
      len(one_S),
      worlds_tables.verdict(claim.sign, gain),
    )
    found.setdefault(method, []).append(one)
  return found


def _against(claim: sweep.Claim) -> str:
  """'0.75', 'METHOD', or 'METHOD in WORLD' if that is another one."""
  if isinstance(claim.other, float):
    return str(claim.other)
  world, method = claim.other
  name = method + f' less {claim.base}' * bool(claim.base)
  return name if world == claim.one[0] else f'{name} in {world}'


def judged(
  runs: dict[str, list[dict[str, Any]]],
) -> list[tuple[sweep.Claim, Measured]]:
  """Every claim with what was measured.

  p-values are adjusted for the claims of a world, for each metric only.
  """
  found = [measured(runs, claim) for claim in sweep.CLAIMS]
  kind_N = np.array([f'{c.one[0]} {c.metric}' for c in sweep.CLAIMS])
  p_N = np.array([gain.p for *_, gain in found])
  for kind in set(kind_N):
    p_N[kind_N == kind] = intervals.adjusted(p_N[kind_N == kind])
  return [
    (claim, (one_S, other_S, gain._replace(p=p)))
    for claim, (one_S, other_S, gain), p in zip(
      sweep.CLAIMS, found, p_N, strict=True
    )
  ]


def measured(
  runs: dict[str, list[dict[str, Any]]], claim: sweep.Claim
) -> Measured:
  """The measurement of a claim's runs, with p for this claim only."""
  one_S = _above(runs, claim.one, claim)
  if isinstance(claim.other, float):
    other_S = np.full_like(one_S, claim.other)
  else:
    other_S = _above(runs, claim.other, claim)
  return one_S, other_S, intervals.difference(one_S, other_S)


def _above(runs, of: tuple[str, str], claim: sweep.Claim) -> np.ndarray:
  own_S = values(runs, of, claim.metric)
  if not claim.base:
    return own_S
  return own_S - values(runs, (of[0], claim.base), claim.metric)


def values(
  runs: dict[str, list[dict[str, Any]]], of: tuple[str, str], metric: str
) -> np.ndarray:
  """The metric of a (world, method) in the order of seeds."""
  world, method = of
  found = {
    line['setting']['seed']: number(line['last'], metric)
    for line in runs[world]
    if line['setting']['method'] == method
  }
  return np.array([found[seed] for seed in sorted(found)])


def number(last: dict[str, float], metric: str) -> float:
  """A metric; of 'A per B' the ratio of two, which are means over episodes."""
  name, _, base = metric.partition(' per ')
  return last[name] / last[base] if base else last[name]
