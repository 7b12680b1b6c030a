"""Values of parsed formulas: exact where they are rational, else many digits.

Trees are unevaluated, with few leaves and small exponents (`math_forms`). Two
formulas that differ at all differ by far more than the last of 250 digits,
relative to their size: no absolute tolerance takes 0 for a small number.
"""

from fractions import Fraction
from typing import Any

_DIGITS = 250
_COMPARED = 200  # of these; the others are lost where terms cancel
_MAX_BITS = 100_000  # of exact numbers
_POINTS = tuple(Fraction(n, 7) for n in (3, -5, 11, -16, 9, 23))


def rational(tree: Any) -> Fraction | None:
  """The exact value of a tree of numbers, sums, products and whole powers."""
  if tree.is_Rational:
    return Fraction(int(tree.p), int(tree.q))
  if tree.is_Float:
    return Fraction(str(tree))  # the digits that were written
  if not (tree.is_Add or tree.is_Mul or tree.is_Pow):
    return None
  parts: list[Fraction] = []
  for part in tree.args:
    value = rational(part)
    if value is None:
      return None
    parts.append(value)
  if tree.is_Pow:
    return _power(*parts)
  total = Fraction(int(tree.is_Mul))
  for part in parts:
    total = total * part if tree.is_Mul else total + part
    if _bits(total) > _MAX_BITS:
      return None
  return total


def _power(base, exponent):
  if exponent.denominator != 1 or (base == 0 and exponent < 0):
    return None
  if _bits(base) * abs(exponent) > _MAX_BITS:
    return None
  return base ** int(exponent)


def _bits(number):
  return number.numerator.bit_length() + number.denominator.bit_length()


def same(given: Any, right: Any) -> bool:
  """Returns whether two trees with the same symbols have the same value.

  At points where both are complex they are not compared: the square root of 1/n
  is 1 over that of n only where there are such roots.
  """
  pair = rational(given), rational(right)
  if None not in pair:
    return pair[0] == pair[1]
  symbols, compared = right.free_symbols, 0
  for k in range(len(_POINTS) if symbols else 1):
    a, b = _at_point(given, symbols, k), _at_point(right, symbols, k)
    if b is None or (symbols and a is not None and _both_complex(a, b)):
      continue
    if a is None or not _close(a, b):
      return False
    compared += 1
  return compared > 0


def proportional(left: tuple[Any, Any], right: tuple[Any, Any]) -> bool:
  """Returns whether a - b = r (c - d) of trees (a, b), (c, d), one r at all
  points.
  """
  symbols = {x for tree in (*left, *right) for x in tree.free_symbols}
  factor = None
  for k in range(len(_POINTS)):
    a, b, c, d = (_at_point(side, symbols, k) for side in (*left, *right))
    if a is None or b is None or c is None or d is None or _close(c, d):
      continue
    if _close(a, b):
      return False
    ratio = (a - b) / (c - d)
    if not _close(ratio, factor or ratio):
      return False
    factor = factor or ratio
  return factor is not None


def text_of(tree: Any) -> str:
  """Symbols and values at two points, or ''; trees that are `same` share it."""
  exact = rational(tree)
  if exact is not None and _bits(exact) < 1000:
    return f'[] {exact}'
  symbols = sorted(tree.free_symbols, key=str)
  values = [_at_point(tree, symbols, k) for k in range(2 if symbols else 1)]
  if None in values:
    return ''
  return f'{symbols} {[_shown(value) for value in values]}'


def _shown(value):
  """Real and imaginary part; what is relatively nothing is 0."""
  least = abs(value) * 10**-_COMPARED
  parts = value.as_real_imag()
  shown = [0 if abs(x) <= least else x.n(_COMPARED) for x in parts]
  return ','.join(map(str, shown))


def _at_point(tree, symbols, k):
  """The value at the k-th point, as a complex number of many digits, or None.

  What cannot be distinguished from 0 is 0.
  """
  import sympy

  points = {}
  for i, symbol in enumerate(sorted(symbols, key=str)):
    point = _POINTS[(k + i) % len(_POINTS)] + Fraction(i, 3)
    points[symbol] = sympy.Rational(point.numerator, point.denominator)
  written = {x: sympy.Rational(str(x)) for x in tree.atoms(sympy.Float)}
  try:
    exact = tree.xreplace(written) if written else tree
    value = exact.evalf(_DIGITS, subs=points, maxn=2 * _DIGITS)
    if not value.is_number or not value.is_finite:
      return None
    real, imaginary = value.as_real_imag()
    if not (real.is_Number and imaginary.is_Number):
      return None  # such as 0^{1/100}, which stays as it is
  except (ArithmeticError, ValueError, TypeError, AttributeError):
    return None
  return _known(real) + sympy.I * _known(imaginary)


def _known(part):
  """0 for a Float none of whose digits is certain, as of x - x."""
  return 0 if part.is_Float and part._prec <= 1 else part


def _both_complex(a, b):
  return bool(a.as_real_imag()[1] and b.as_real_imag()[1])


def _close(a, b):
  return bool(abs(a - b) <= abs(b) * 10**-_COMPARED)
