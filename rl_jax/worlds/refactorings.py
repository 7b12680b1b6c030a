"""Straight-line functions, of which a part is to become another function.

Code is Python with two marks: `D` for `def ` and `R` for `return `, so that a
function is a line of few characters: 'Df(a):b=a+1;c=b*2;Rc'.
"""

import ast
from collections.abc import Callable, Sequence
import dataclasses

from rl_jax.checks import check_range, checked, chosen, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example

_NAMES = 'bcdehijk'  # of the assignments, in order
_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
  ast.Add: int.__add__,
  ast.Sub: int.__sub__,
  ast.Mult: int.__mul__,
}
_MODULUS = 1_000_003  # values stay small, whatever is multiplied
_CALLS = 20  # of functions, in one run
_INPUTS = (0, 1, 2, 7, 19)


def python(text: str) -> str:
  """The Python of a text with marks."""
  return text.replace('D', 'def ').replace('R', 'return ')


def functions(text: str) -> dict[str, ast.FunctionDef] | None:
  """The functions of a text by name, in order; None unless all of it is that.

  A function has plain arguments, assignments to a name and a return at its end;
  the last of two of one name counts, as in Python.
  """
  try:
    body = ast.parse(python(text)).body
  except (SyntaxError, ValueError, RecursionError, MemoryError):
    return None
  found: dict[str, ast.FunctionDef] = {}
  for one in body:
    if not isinstance(one, ast.FunctionDef) or not _is_plain(one):
      return None
    found.pop(one.name, None)
    found[one.name] = one
  return found or None


def _is_plain(one):
  return len(_terms(one)) == len(one.body)


def _terms(one: ast.FunctionDef) -> list[tuple[str, ast.expr]]:
  """(name, value) of each assignment, then ('', value) of the return."""
  *assignments, last = one.body
  found = []
  for statement in assignments:
    match statement:
      case ast.Assign(targets=[ast.Name(id=name)], value=term):
        found.append((name, term))
  match last:
    case ast.Return(value=ast.expr() as term):
      found.append(('', term))
  return found


class _RunError(Exception):
  """The code fails when it is run."""


def run(found: dict[str, ast.FunctionDef], name: str, *values: int) -> int:
  """The result of a call, modulo a prime.

  Raises: _RunError for an unknown name, other arguments or too many calls.
  """
  left = [_CALLS]

  def call(name, values):
    left[0] -= 1
    one = found.get(name)
    if left[0] < 0 or one is None or len(one.args.args) != len(values):
      raise _RunError(name)
    known = {x.arg: v for x, v in zip(one.args.args, values, strict=True)}
    for name, term in _terms(one):
      known[name] = value(term, known)
    return known['']

  def value(node, known):
    match node:
      case ast.Constant(value=int() as number):
        return number
      case ast.Name(id=name) if name in known:
        return known[name]
      case ast.BinOp(op=op) if type(op) in _OPERATIONS:
        sides = value(node.left, known), value(node.right, known)
        return _OPERATIONS[type(op)](*sides) % _MODULUS
      case ast.Call(func=ast.Name(id=name), keywords=[]):
        return call(name, [value(x, known) for x in node.args])
    raise _RunError(ast.dump(node))

  return call(name, values)


def runs(found: dict[str, ast.FunctionDef]) -> bool:
  """Returns whether every function returns, called with ones."""
  try:
    for name, one in found.items():
      run(found, name, *(1 for _ in one.args.args))
  except _RunError:
    return False
  return True


def behaves(
  before: dict[str, ast.FunctionDef], after: dict[str, ast.FunctionDef]
) -> bool:
  """Returns whether f gives the same for all _INPUTS, after as before."""
  try:
    return all(run(before, 'f', x) == run(after, 'f', x) for x in _INPUTS)
  except _RunError:
    return False


def calls_new(after: dict[str, ast.FunctionDef]) -> str | None:
  """The first function besides f that f calls; None: there is none."""
  if 'f' not in after:
    return None
  called = [
    x.func.id
    for x in ast.walk(after['f'])
    if isinstance(x, ast.Call) and isinstance(x.func, ast.Name)
  ]
  return next((name for name in called if name in after and name != 'f'), None)


def extracts(
  before: dict[str, ast.FunctionDef], after: dict[str, ast.FunctionDef]
) -> bool:
  """Returns whether f calls a new function with a part of the former f.

  Its assignments are a contiguous part up to names, and in f one assignment
  stands for them.
  """
  name = calls_new(after)
  if name is None:
    return False
  new, old = after[name].body[:-1], before['f'].body[:-1]
  if len(after['f'].body) != len(before['f'].body) - len(new) + 1:
    return False
  starts = range(len(old) - len(new) + 1) if len(new) > 1 else ()
  return any(_same(old[i : i + len(new)], new) for i in starts)


def _same(some: Sequence[ast.stmt], others: Sequence[ast.stmt]) -> bool:
  """Equal up to a renaming, which is one to one."""
  there: dict[str, str] = {}
  back: dict[str, str] = {}
  for one, other in zip(some, others, strict=True):
    nodes = list(ast.walk(one)), list(ast.walk(other))
    if [type(x) for x in nodes[0]] != [type(x) for x in nodes[1]]:
      return False
    for x, y in zip(*nodes, strict=True):
      match x, y:
        case ast.Constant(value=value), ast.Constant(value=other_value):
          if value != other_value:
            return False
        case ast.Name(id=name), ast.Name(id=other_name):
          if there.setdefault(name, other_name) != other_name:
            return False
          if back.setdefault(other_name, name) != name:
            return False
  return True


@dataclasses.dataclass(frozen=True)
@checked
class Refactorings(DrawnTask):
  """Prompt 'Df(a):b=a+1;c=b*2;d=c-a;Rd' and a new line; the response moves two
  assignments or more into a function that f calls:

    Dg(a):b=a+1;c=b*2;Rc|Df(a):c=g(a);d=c-a;Rd

  with | for a new line. Components, all 0 or 1:
    parses: it is functions of assignments, and nothing else.
    runs: it parses, and every function returns.
    extracted: by `detector` 'strict' see `extracts`; 'called' asks only for a
      function that f calls, as a miner of refactorings by names would.
    behaves: f returns what it did, for five inputs.
    outcome: all four, extracted being strict.
  The reward is parses + runs + extracted, from 0 to 3; `behaves` weighs nothing
  by default, as in the paper.

  `target` extracts the first part that has one result. A share `slips` of the
  targets lacks the last assignment of the new function (an imperfect teacher).
  Source: "Generating refactored code accurately using reinforcement learning";
  SMART-Dal/extract-method-generation, by a digest: Java, CodeT5, tools there.
  """

  min_statements: int = ranged(3, 3)
  max_statements: int = ranged(4, 3, len(_NAMES))
  detector: str = chosen('strict', ('strict', 'called'))
  slips: float = ranged(0.0, 0.0, 1.0)
  num_train: int = ranged(4000, 1)
  num_validation: int = ranged(300, 1)
  num_test: int = ranged(300, 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.weights_field(
    outcome=0.0, parses=1.0, runs=1.0, extracted=1.0, behaves=0.0
  )

  alphabet = '0123456789abcdefghijkDR()+-*=:;,|\n'

  def __post_init__(self):
    check_range(self, 'min_statements', 3, self.max_statements)

  def example(self, split: str, index: int) -> Example:
    """The function of that index."""
    base.check_index(self, split, index)
    text, _ = draws.first_of_split(
      split, 'refactorings', (self.seed, split, index), self._draw
    )
    return Example(prompt=f'{text}\n', answer='', id=index)

  def _draw(self, stream):
    span = self.max_statements - self.min_statements + 1
    count = self.min_statements + stream.below(span)
    known, parts = ['a'], []
    for name in _NAMES[:count]:
      # The last value is used, so that a part has few results.
      right = stream.choice([*known, *'123456789'])
      parts.append(f'{name}={known[-1]}{stream.choice("+-*")}{right}')
      known.append(name)
    text = f'Df(a):{";".join(parts)};R{known[-1]}'
    return ((text,), text) if _parts(parts) else None

  def target(self, example: Example) -> str:
    """Returns what the teacher writes: the same for the same prompt."""
    body = example.prompt.strip().removeprefix('Df(a):').split(';')
    *statements, returned = body
    begin, end, inputs, result = _parts(statements)[0]
    moved = statements[begin:end]
    stream = draws.Draws('refactorings teacher', self.seed, example.prompt)
    if stream.uniform() < self.slips:
      moved.pop()
    names = ','.join(inputs)
    rest = [
      *statements[:begin],
      f'{result}=g({names})',
      *statements[end:],
      returned,
    ]
    last = moved[-1].split('=')[0]
    new = f'Dg({names}):{";".join([*moved, f"R{last}"])}'
    return f'{new}|Df(a):{";".join(rest)}'

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """All components, each evaluated whatever the others are."""
    before = functions(example.prompt)
    after = functions(response.replace('|', '\n'))
    assert before is not None
    found = dict.fromkeys(('parses', 'runs', 'extracted', 'behaves'), 0.0)
    if after is None:
      return found | {base.OUTCOME: 0.0}
    strict = extracts(before, after)
    is_called = calls_new(after) is not None
    found['parses'], found['runs'] = 1.0, float(runs(after))
    found['extracted'] = float(
      strict if self.detector == 'strict' else is_called
    )
    found['behaves'] = float(behaves(before, after))
    right = strict and found['runs'] and found['behaves']
    return found | {base.OUTCOME: float(right)}


def _parts(statements):
  """(begin, end, inputs, result) of the parts with one result, two statements
  at least and not all; the last statement stays.
  """
  found = []
  sides = [statement.split('=') for statement in statements]
  used = [{x for x in right if x.isalpha()} for _, right in sides]
  names = [left for left, _ in sides]
  for begin in range(len(statements) - 2):
    for end in range(begin + 2, len(statements)):
      inner = set(names[begin:end])
      later = set.union(*used[end:])
      inputs, known = set(), set()
      for place in range(begin, end):
        inputs |= used[place] - known
        known.add(names[place])
      results = inner & later
      if len(results) == 1:
        found.append((begin, end, sorted(inputs), *results))
  return found
