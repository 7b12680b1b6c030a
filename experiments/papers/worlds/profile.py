"""What was seen of each method: a line for all of them, a profile of some."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from experiments.papers.worlds import where
from experiments.tables import cells as cells_lib
from experiments.tables import intervals, methods

NOT_MEASURED = 'not measured'
Cells = list[list[str]]


class Seen(NamedTuple):
  """A claim that was judged in a world.

  metric: on which. found: against the baseline over `seeds`.
  """

  world: str
  claim: str
  metric: str
  found: intervals.Comparison
  seeds: int
  verdict: str


def landed(names: Sequence[str], seen: Mapping[str, Sequence[Seen]]) -> Cells:
  """A row for each method and world in which its claim was judged.

  A method that was judged nowhere has the headline of its paper and the world
  in which it acts by a test, or the reason why it is in none.
  """
  table = [['method', 'claim', 'world', 'measured', 'seeds', 'verdict']]
  for name in names:
    for one in seen.get(name, ()):
      effect, interval, _ = cells_lib.comparison_text(one.found)
      measured = f'{one.metric} {effect} {interval}'
      row = [name, one.claim, one.world, measured, str(one.seeds), one.verdict]
      table.append(row)
    if name not in seen:
      place = where.WHERE.get(name)
      world = place.world if place else where.NOWHERE[name].split(':')[0]
      claim = methods.parts(name)['Headline'].removesuffix('.')
      claim = claim.replace('|', r'\|')
      table.append([name, claim, world, '', '', NOT_MEASURED])
  return table


def profile(
  names: Sequence[str],
  effects: Mapping[str, Mapping[str, intervals.Comparison]],
) -> Cells:
  """Differences to GRPO in points by world; `*`: separated.

  effects: world -> method -> its comparison, p adjusted for the world's rows.
  """
  table = [['method', *effects]]
  for name in names:
    cells = []
    for of_world in effects.values():
      one, text = of_world.get(name), ''
      if one is not None:
        star = '*' if one.p <= intervals.FALSE_DISCOVERIES else ''
        text = f'{100 * one.effect:+.1f}{star}'
      cells.append(text)
    table.append([name, *cells])
  return table
