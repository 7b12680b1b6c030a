"""How much code a method is: lines of its own pieces, and tests that name them.

A piece is a method's own if plain GRPO does not have it; how token losses are
averaged is none. Lines are those of the classes, without blank lines, comments
and docstrings, and without the functions that pieces share.
"""

import ast
import functools
import inspect
import re
from typing import Any

from experiments.flags import configuration

BASELINE = 'grpo'


def of_method(name: str) -> dict[str, int]:
  """{'lines', 'tests'} of configs/methods/NAME.py; of GRPO, all its pieces.

  tests: functions in tests/ whose text names the method in quotes or one of its
  own pieces. A parametrized function counts once.
  """
  own = _classes(name)
  if name != BASELINE:
    own -= _classes(BASELINE)
  words = [piece.__name__ for piece in own]
  known = '|'.join([rf"'{name}'", *(rf'\b{word}\b' for word in words)])
  tests = sum(bool(re.search(known, text)) for text in _tests())
  lines = sum(code_lines(inspect.getsource(piece)) for piece in own)
  return {'lines': lines, 'tests': tests}


def code_lines(text: str) -> int:
  """Lines with code on them; docstrings are none."""
  skipped = set()
  for node in ast.walk(ast.parse(text)):
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
      skipped.update(range(node.lineno, node.end_lineno + 1))
  return sum(
    bool(line.strip()) and not line.lstrip().startswith('#')
    for number, line in enumerate(text.splitlines(), 1)
    if number not in skipped
  )


def _classes(name: str) -> set[Any]:
  """Classes of a method's pieces, its selector and its way of sampling."""
  method = configuration.load_method(name)
  pieces = [p for path, p in method.pieces() if path[:11] != 'aggregation']
  pieces += [method.selector, method.rollout]
  return {type(piece) for piece in pieces if piece is not None}


@functools.cache
def _tests() -> list[str]:
  """The text of every test function."""
  found = []
  for path in sorted((configuration.ROOT / 'tests').rglob('test_*.py')):
    text = path.read_text()
    found += [
      ast.get_source_segment(text, node)
      for node in ast.walk(ast.parse(text))
      if isinstance(node, ast.FunctionDef) and node.name.startswith('test_')
    ]
  return found
