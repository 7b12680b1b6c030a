"""Checks antiderivatives by numbers at points; no code is run."""

import ast
import random
from typing import Any

from rl_jax.tasks.expressions import ExpressionError

MAX_CHARACTERS = 1000
_FUNCTIONS = (
  *('exp', 'log', 'ln', 'sqrt', 'sin', 'cos', 'tan', 'sec', 'csc', 'cot'),
  *('asin', 'acos', 'atan', 'sinh', 'cosh', 'tanh', 'asinh', 'acosh', 'atanh'),
)
_MOST = 1e100  # of a value; larger ones are not answers, and could take long
_MOST_INSIDE = 1e6  # of a function and of an exponent
_DIGITS = 30  # of the arithmetic
_AGREE = 1e-12  # relative, and absolute near 0
_POINTS, _ENOUGH = 200, 8  # tried; where the integrand is a real number
_SIZES = (0.3, 3.0, 30.0)  # of points; inverse functions are real close to 0
_MODERATE = 1e40  # of an integrand at a point


def is_antiderivative(text: str, integrand: str, variable: str) -> bool:
  """Returns whether d text / d variable = integrand at random points.

  Grammar of both: numbers, the variable, C (any constant), E, pi, + - * / **,
  parentheses, and common functions of one argument. Points at which the
  integrand is not a real number are passed over.

  Raises: ExpressionError if the text is not of the grammar, or for values
    beyond 1e100.
  """
  import mpmath

  tree, right = _parsed(text), _parsed(integrand)
  points, agreed = random.Random(integrand), 0
  with mpmath.workdps(_DIGITS):
    for n in range(_POINTS):
      point = points.uniform(-1, 1) * _SIZES[n % len(_SIZES)]
      names = {variable: mpmath.mpf(point), 'C': mpmath.mpf(points.random())}
      try:
        expected = _value(right, names)
      except (ArithmeticError, ValueError):
        continue
      if mpmath.im(expected) or abs(expected) > _MODERATE:
        continue
      if not _agrees(tree, names, variable, expected):
        return False
      agreed += 1
      if agreed == _ENOUGH:
        return True
  return False


def _agrees(tree, names, variable, expected):
  import mpmath

  def at(point):
    return _value(tree, names | {variable: point})

  try:
    slope = mpmath.diff(at, names[variable])
  except ExpressionError:
    raise
  except (ArithmeticError, ValueError):
    return False
  return mpmath.almosteq(slope, expected, rel_eps=_AGREE, abs_eps=_AGREE)


def _parsed(text):
  if len(text) > MAX_CHARACTERS:
    raise ExpressionError(f'longer than {MAX_CHARACTERS} characters')
  try:
    return ast.parse(text.strip(), mode='eval').body
  except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
    raise ExpressionError('not an expression') from error


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
  """The value of a part; only what the grammar names is computed."""
  try:
    value = _computed(node, names)
  except RecursionError as error:
    raise ExpressionError('too deep') from error
  if not abs(value) < _MOST:
    raise ExpressionError(f'a value beyond {_MOST:g}')
  return value


def _computed(node, names):
  import mpmath

  match node:
    case ast.Constant(value=int() | float() as number) if (
      type(number) is not bool
    ):
      return mpmath.mpf(number)
    case ast.Name(id=name) if name in names:
      return names[name]
    case ast.Name(id='E'):
      return mpmath.mp.e
    case ast.Name(id='pi'):
      return +mpmath.pi
    case ast.UnaryOp(op=ast.USub()):
      return -_value(node.operand, names)
    case ast.UnaryOp(op=ast.UAdd()):
      return _value(node.operand, names)
    case ast.BinOp():
      left, right = _value(node.left, names), _value(node.right, names)
      return _operation(node.op, left, right)
    case ast.Call(func=ast.Name(id=name), args=[inside], keywords=[]) if (
      name in _FUNCTIONS
    ):
      return getattr(mpmath, name)(_inside(_value(inside, names)))
  raise ExpressionError(f'{type(node).__name__} is not allowed')


def _operation(operation, left, right):
  match operation:
    case ast.Add():
      return left + right
    case ast.Sub():
      return left - right
    case ast.Mult():
      return left * right
    case ast.Div():
      return left / right
    case ast.Pow():
      return left ** _inside(right)
  raise ExpressionError(f'{type(operation).__name__} is not allowed')


def _inside(value):
  if not abs(value) <= _MOST_INSIDE:
    raise ExpressionError(f'a function of more than {_MOST_INSIDE:g}')
  return value
