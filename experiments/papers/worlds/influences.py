"""What `acting` has measured, as cells of tables."""

import pathlib
from typing import Any

from rl_jax.records import metrics
from rl_jax.runs import influence

FILE = pathlib.Path(__file__).parent / 'influence.jsonl'
NIL = 'does not act here'
HEADER = ('against', 'cos', 'ratio', 'without a piece')
Line = dict[str, Any]


def of_world(world: str) -> dict[str, Line]:
  """Method -> its line."""
  rows = metrics.read_jsonl(FILE)
  return {row['method']: row for row in rows if row['world'] == world}


def acts(name: str, found: dict[str, Line]) -> bool:
  """As was measured; without a line, as the baseline, it counts as acting."""
  return name not in found or influence.acts(found[name])


def cells(line: Line | None) -> list[str]:
  """Of HEADER; empty without a line.

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
