"""The profile of a method: what was seen of it in several worlds."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from experiments.tables import intervals

Cells = list[list[str]]


class Seen(NamedTuple):
  """A claim that was judged in a world.

  metric: on which. comparison: against the baseline over `seeds`.
  """

  world: str
  claim: str
  metric: str
  comparison: intervals.Comparison
  seeds: int
  verdict: str


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
