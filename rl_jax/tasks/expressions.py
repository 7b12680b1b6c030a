"""Exact values of arithmetic expressions in model output, without eval."""

import ast
from collections.abc import Callable
from fractions import Fraction
import re

from rl_jax.tasks import answers, base

MAX_CHARACTERS = 200
MAX_DIGITS = 6  # of one number
_ALLOWED = re.compile(r'[0-9+\-*/() ]+')
_LONG_NUMBER = re.compile(rf'[0-9]{{{MAX_DIGITS + 1}}}')


class ExpressionError(ValueError):
  """The text is not an expression of the grammar, or divides by zero."""


_OPERATIONS: dict[type, Callable[[Fraction, Fraction], Fraction]] = {
  ast.Add: lambda a, b: a + b,
  ast.Sub: lambda a, b: a - b,
  ast.Mult: lambda a, b: a * b,
  ast.Div: lambda a, b: a / b,
}


def evaluate(text: str, signs: bool = False) -> tuple[Fraction, list[int]]:
  """(exact value, the integers used, in order of appearance).

  Grammar: non-negative integers of at most 6 digits, binary + - * /,
  parentheses and spaces, at most 200 characters. Decimals, '**', '//' and
  everything else raise ExpressionError, so no result can be large.
  signs: whether a minus may precede a number or a parenthesis.
  """
  text = text.strip(' \n\t\r')
  if len(text) > MAX_CHARACTERS:
    raise ExpressionError(f'longer than {MAX_CHARACTERS} characters')
  if not _ALLOWED.fullmatch(text) or _LONG_NUMBER.search(text):
    raise ExpressionError('a character or number that is not allowed')
  try:
    tree = ast.parse(text, mode='eval')
  except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
    raise ExpressionError('not an expression') from error
  used = []
  try:
    value = _value(tree.body, used, signs)
  except ZeroDivisionError as error:
    raise ExpressionError('division by zero') from error
  return value, used


def first_line_value(text: str) -> Fraction | None:
  """The exact value of the first line that is not empty, or None."""
  try:
    return evaluate(text.lstrip().split('\n', 1)[0])[0]
  except ExpressionError:
    return None


def judged(
  text: str, right: Fraction | None, clusters: bool
) -> dict[str, float]:
  """Components of a response whose first line should have the value `right`.

  `outcome`; `format`: the first line is an expression; with `clusters` also
  `cluster_id`, equal for equal values, -1 without one.
  """
  value = first_line_value(text)
  found = {
    base.OUTCOME: float(value is not None and value == right),
    'format': float(value is not None),
  }
  if clusters:
    form = None if value is None else str(value)
    found['cluster_id'] = answers.cluster_id(form)
  return found


def _value(node: ast.expr, used: list[int], signs: bool) -> Fraction:
  if isinstance(node, ast.Constant) and type(node.value) is int:
    used.append(node.value)
    return Fraction(node.value)
  if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
    left = _value(node.left, used, signs)
    return _OPERATIONS[type(node.op)](left, _value(node.right, used, signs))
  if signs and isinstance(node, ast.UnaryOp) and type(node.op) is ast.USub:
    return -_value(node.operand, used, signs)
  raise ExpressionError(f'{type(node).__name__} is not allowed')
