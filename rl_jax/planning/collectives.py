"""The collectives of a compiled program, counted with its loops multiplied out.

A collective in a loop counts as often as the loop runs. XLA for CPU and GPU
notes how often each loop of a scan does; in programs for TPU its condition says
so, which compares the number of the turn with a constant. What a device sends
is that of a ring of n devices, for a result of b bytes: all-reduce
2 b (n - 1) / n, all-gather and all-to-all b (n - 1) / n, reduce-scatter
b (n - 1), collective-permute b.
"""

import collections
import dataclasses
import math
import re

KINDS = (
  'all-reduce',
  'all-gather',
  'reduce-scatter',
  'all-to-all',
  'collective-permute',
)

_COMPUTATION = re.compile(r'^(ENTRY )?%?([\w.\-]+) \(.*\{$')
_INSTRUCTION = re.compile(
  r'^\s+(?:ROOT )?%?\S+ = (\(.*?\)|\S+) ([a-z][\w\-]*)\('
)
_STARTED = re.compile(r'^\s+%?(\S+) = .* [a-z\-]+-start\(')
_DONE = re.compile(r'-done\([^%]*%([\w.\-]+)')
_CALLED = re.compile(
  r'(?:body|condition|calls|to_apply|true_computation|false_computation)='
  r'%?([\w.\-]+)'
)
_BRANCHES = re.compile(r'branch_computations=\{([^}]*)\}')
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_COMPARED = re.compile(
  r'^\s+ROOT .* compare\(%?([\w.\-]+), %?([\w.\-]+)\), direction=LT'
)
_ARRAY = re.compile(r'(?:^|[(, /])(pred|[a-z]+\d+[a-z0-9]*)\[([\d,]*)\]')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Collective:
  """All collectives of one kind between groups of one size, in one call."""

  kind: str
  group: int  # devices that exchange with one another
  count: int
  bytes: int  # of the results, on one device, summed

  @property
  def sent(self) -> float:
    """Bytes that one device sends."""
    n = self.group
    factor = {
      'all-reduce': 2 * (n - 1) / n,
      'all-gather': (n - 1) / n,
      'all-to-all': (n - 1) / n,
      'reduce-scatter': n - 1,
      'collective-permute': 1,
    }[self.kind]
    return factor * self.bytes


def count(
  text: str, *, devices: int, unknown_trips: int = 1
) -> list[Collective]:
  """The collectives of one call of a program, largest first.

  Groups of one device exchange nothing and are left out. Both branches of a
  conditional are counted.

  Args:
    text: the optimised HLO, jax.stages.Compiled.as_text().
    devices: of the whole program, for collectives without groups.
    unknown_trips: how often a loop runs whose end depends on data.
  """
  return _totalled(*_computations(text), devices, unknown_trips)


def _totalled(computations, entry, devices, unknown_trips):
  """The collectives of a computation and of what it calls, largest first."""
  totals: dict[str, collections.Counter] = {}

  def total(name: str) -> collections.Counter:
    if name in totals:
      return totals[name]
    found: collections.Counter = collections.Counter()
    lines = computations.get(name, ())
    started = {}
    for line in lines:
      if match := _STARTED.match(line):
        started[match.group(1)] = _group_size(line, devices)
      found.update(_of_line(line, devices, started))
      times = 1
      if _opcode(line) == 'while':
        known = _known_trips(line, computations)
        times = unknown_trips if known is None else known
      for called in _called(line):
        for key, value in total(called).items():
          found[key] += times * value
    totals[name] = found
    return found

  found = total(entry)
  result = [
    Collective(
      kind=kind, group=group, count=number, bytes=found[kind, group, 'bytes']
    )
    for (kind, group, what), number in found.items()
    if what == 'count'
  ]
  return sorted(result, key=lambda x: -x.sent)


def in_loops(
  text: str, *, devices: int, trips: int | None = None
) -> list[Collective]:
  """The collectives of one turn of each loop with so many turns.

  Args:
    text, devices: see count.
    trips: turns of the loops; None: of those whose end depends on data, which
      are the loops over tokens in a decoding program.
  """
  computations, _ = _computations(text)
  bodies = [
    match.group(1)
    for lines in computations.values()
    for line in lines
    if _opcode(line) == 'while' and _known_trips(line, computations) == trips
    for match in re.finditer(r'body=%?([\w.\-]+)', line)
  ]
  return [
    one
    for body in bodies
    for one in _totalled(computations, body, devices, unknown_trips=1)
  ]


def trips(text: str) -> list[int | None]:
  """Returns how often each loop of a program runs; None: its end depends on
  data.
  """
  computations, _ = _computations(text)
  return [
    _known_trips(line, computations)
    for lines in computations.values()
    for line in lines
    if _opcode(line) == 'while'
  ]


def _known_trips(line: str, computations: dict[str, list[str]]) -> int | None:
  """Returns how often the loop of a line runs; None: its end depends on
  data.
  """
  if known := _TRIPS.search(line):
    return int(known.group(1))
  condition = re.search(r'condition=%?([\w.\-]+)', line)
  lines = computations.get(condition.group(1), []) if condition else []
  for compared in map(_COMPARED.match, lines):
    if compared is None:
      continue
    turn, most = (re.escape(name) for name in compared.groups())
    # Numbers of turns are elements of what the loop carries, from 0 on.
    element = re.compile(rf'^\s+%?{turn} = [su]32\[\]\S* get-tuple-element\(')
    constant = re.compile(rf'^\s+%?{most} = [su]32\[\]\S* constant\((\d+)\)')
    found = [x for x in map(constant.match, lines) if x]
    if found and any(map(element.match, lines)):
      return int(found[0].group(1))
  return None


def _computations(text: str) -> tuple[dict[str, list[str]], str]:
  """Instruction lines by computation, and the name of the entry."""
  found, lines, entry = {}, [], ''
  for line in text.splitlines():
    header = _COMPUTATION.match(line)
    if header:
      lines = found.setdefault(header.group(2), [])
      entry = header.group(2) if header.group(1) else entry
    elif line.startswith(' '):
      lines.append(line)
  if not entry:
    raise ValueError('the text has no ENTRY computation: no HLO of a program')
  return found, entry


def _opcode(line: str) -> str:
  match = _INSTRUCTION.match(line)
  return match.group(2) if match else ''


def _of_line(
  line: str, devices: int, started: dict[str, int]
) -> dict[tuple, int]:
  """{(kind, group, 'count' or 'bytes'): number} of one instruction.

  started: group sizes of -start parts before it, by name.
  """
  match = _INSTRUCTION.match(line)
  if match is None:
    return {}
  # Only the -done part of an asynchronous pair has the result, and only the
  # -start part, which is its operand, has the groups.
  kind = match.group(2).removesuffix('-done')
  if kind not in KINDS:
    return {}
  done = _DONE.search(line)
  group = done and started.get(done.group(1)) or _group_size(line, devices)
  if group == 1:
    return {}
  size = sum(map(_array_bytes, _ARRAY.finditer(match.group(1))))
  return {(kind, group, 'count'): 1, (kind, group, 'bytes'): size}


def _array_bytes(match: re.Match) -> int:
  dtype, shape = match.groups()
  digits = re.search(r'\d+', dtype)
  bits = int(digits.group()) if digits else 8  # of pred
  return math.prod(int(d) for d in shape.split(',') if d) * bits // 8


_PART = 'async_collective_fusion'


def _called(line: str) -> list[str]:
  # XLA for TPU moves a part of a running transfer in each such fusion. It
  # begins and ends in other fusions, so that loops do not wait for it.
  found = _CALLED.findall(line)
  names = [name for name in found if not name.startswith(_PART)]
  for group in _BRANCHES.findall(line):
    names += [name.strip().lstrip('%') for name in group.split(',')]
  return names


def _group_size(line: str, devices: int) -> int:
  """Devices of one group, from the three ways in which HLO writes groups."""
  if 'source_target_pairs=' in line:
    return 2
  match = re.search(r'replica_groups=\[(\d+),(\d+)\]', line)
  if match:
    return int(match.group(2))
  match = re.search(r'replica_groups=mesh\[([^\]]*)\]\s*\{([^}]*)\}', line)
  if match:
    sizes = dict(re.findall(r"'(\w+)'=(\d+)", match.group(1)))
    # 'axis':(k)n is a part of n devices of an axis.
    used = re.findall(r"'(\w+)'(?::\(\d+\)(\d+))?", match.group(2))
    return math.prod(int(part or sizes[name]) for name, part in used)
  match = re.search(r'replica_groups=\{\{([\d,]+)\}', line)
  if match:
    return len(match.group(1).split(','))
  return devices
