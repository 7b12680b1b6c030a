"""Mutants of a module's source: one changed constant or operator each."""

import ast
from collections.abc import Iterator
import copy
import dataclasses

ARITHMETIC = {
  ast.Add: ast.Sub,
  ast.Sub: ast.Add,
  ast.Mult: ast.Div,
  ast.Div: ast.Mult,
  ast.Pow: ast.Mult,
  ast.Mod: ast.Mult,
  ast.BitAnd: ast.BitOr,
  ast.BitOr: ast.BitAnd,
}
COMPARISONS = {
  ast.Lt: ast.Gt,
  ast.LtE: ast.Gt,
  ast.Gt: ast.Lt,
  ast.GtE: ast.Lt,
  ast.Eq: ast.NotEq,
  ast.NotEq: ast.Eq,
}
# Functions that define formulas: name -> its opposite.
CALLS = {
  'minimum': 'maximum',
  'maximum': 'minimum',
  'min': 'max',
  'max': 'min',
  'mean': 'sum',
  'sum': 'mean',
  'floor': 'ceil',
  'ceil': 'floor',
}
UNWRAPPED = (
  'stop_gradient',
  'clip',
  'exp',
  'expm1',
  'log',
  'log1p',
  'sqrt',
  'square',
  'abs',
  'sigmoid',
  'tanh',
)
LAYOUT = ('axis', 'keepdims', 'dtype')  # keywords about arrays, not formulas
FIELDS = ('ranged', 'chosen')  # only the default belongs to the method
CHECKS = ('__post_init__', 'check_task', 'check', 'validate')


@dataclasses.dataclass(frozen=True)
class Mutant:
  """One change. No line number in `name`: it outlives other edits."""

  line: int
  name: str  # 'source line: old -> new'
  tree: ast.Module

  def code(self, path: str):
    """Compiled, as if it were the file."""
    return compile(ast.fix_missing_locations(self.tree), path, 'exec')


def mutants(source: str, function: str | None = None) -> Iterator[Mutant]:
  """Every mutant of the source, or of one of its functions.

  Constants are doubled (0 becomes 1, True False; an int gains 1), arithmetic,
  comparisons and bounds turn into their opposites, signs, stop_gradient, clip
  and elementary functions vanish, branches of `where` are exchanged, parts of
  a tuple argument vanish. Annotations, docstrings, class variables, validation
  and the layout of arrays stay.
  """
  tree, lines = ast.parse(source), source.splitlines()
  count, seen = len(_sites(tree, function)), {}
  for i in range(count):
    changed = copy.deepcopy(tree)
    node, alternative = _sites(changed, function)[i]
    old = ast.unparse(node)
    line = node.lineno
    _replace(node, alternative)
    name = f'{lines[line - 1].strip()}: {old} -> {ast.unparse(node)}'
    seen[name] = seen.get(name, 0) + 1
    if seen[name] > 1:
      name += f' ({seen[name]})'
    yield Mutant(line, name, changed)


def _sites(tree, function):
  """(node, how it changes) in the order of the source."""
  if function is None:
    return list(_visit(tree))
  found = [n for n in tree.body if getattr(n, 'name', None) == function]
  return list(_visit(found[0]))


def _visit(node):
  """Sites below and at a node; checks, types and layout are left out."""
  if isinstance(node, (ast.Import, ast.ImportFrom, ast.Raise, ast.JoinedStr)):
    return
  if isinstance(node, ast.FunctionDef) and node.name in CHECKS:
    return
  if isinstance(node, ast.AnnAssign) and 'ClassVar' in ast.dump(
    node.annotation
  ):
    return
  if isinstance(node, ast.keyword) and node.arg in LAYOUT:
    return
  if isinstance(node, ast.Call) and _called(node).startswith(
    ('check_', 'assert_')
  ):
    return
  if isinstance(node, ast.Call) and _called(node) in FIELDS:
    yield from (site for value in node.args[:1] for site in _visit(value))
    return
  yield from ((node, change) for change in _changes(node))
  skip = {'annotation', 'returns', 'decorator_list', 'bases', 'type_params'}
  for field, value in ast.iter_fields(node):
    if field in skip:
      continue
    for child in value if isinstance(value, list) else [value]:
      if isinstance(child, ast.AST):
        yield from _visit(child)


def _called(node):
  function = node.func
  return getattr(function, 'attr', getattr(function, 'id', ''))


def _changes(node):
  """The changes that can be made to this node."""
  if isinstance(node, ast.Constant):
    if isinstance(node.value, (bool, int, float)):
      yield 'constant'
  elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
    yield 'operator'
  elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
    if not isinstance(node.operand, ast.Constant):
      yield 'sign'
  elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
    yield 'comparison'
  elif isinstance(node, ast.Call):
    name = _called(node)
    if name in CALLS and isinstance(node.func, ast.Attribute):
      yield 'opposite'
    elif name in UNWRAPPED and node.args:
      yield 'unwrap'
    elif name == 'where' and len(node.args) == 3:
      yield 'exchange'
  elif isinstance(node, ast.keyword) and isinstance(node.value, ast.Tuple):
    yield from (f'drop {i}' for i in range(len(node.value.elts)))


def _replace(node, change):
  """Changes the node in place."""
  if change == 'constant':
    value = node.value
    if isinstance(value, bool):
      node.value = not value
    elif isinstance(value, int):
      node.value = value + 1
    else:
      node.value = 2.0 * value or 1.0
  elif change == 'operator':
    node.op = ARITHMETIC[type(node.op)]()
  elif change == 'comparison':
    node.ops[0] = COMPARISONS[type(node.ops[0])]()
  elif change == 'opposite':
    node.func.attr = CALLS[node.func.attr]
  elif change == 'exchange':
    node.args[1], node.args[2] = node.args[2], node.args[1]
  elif change.startswith('drop'):
    del node.value.elts[int(change.split()[1])]
  else:  # sign, unwrap: the argument only
    inner = node.operand if change == 'sign' else node.args[0]
    node.__class__ = type(inner)
    node.__dict__ = inner.__dict__
