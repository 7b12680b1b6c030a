"""Scalar formulas: which are written out, and which have the same values.

A formula copied from the question has the right value. So an answer must be as
far evaluated as the right one: no operation of two numbers that has a simpler
result, no product of sums for an expanded sum or the reverse, no function that
the right one does not use. Nothing is evaluated before: math-verify parses.
"""

from collections.abc import Iterator
from fractions import Fraction
import functools
import itertools
import math
import re
from typing import Any

from rl_jax.tasks import math_values

_COMMANDS = frozenset(
  'frac sqrt pi cdot times theta alpha beta gamma lambda phi omega mu sigma '
  'infty sin cos tan cot sec csc log ln arcsin arccos arctan '
  'sinh cosh tanh exp'.split()
)
_COMMAND = re.compile(r'\\([A-Za-z]+)')
# Integers that are not exponents may be long; exponents may not, nor nest.
_EXPONENT = re.compile(r'\^\s*(\{[^{}^]*\}|[^{}\s\\]|\\[a-z]+)|\*\*')
_MAX_DEPTH, _MAX_LEAVES, _MAX_POWER = 12, 60, 30
_MAX_NESTING, _MAX_CHARACTERS = 8, 300  # the parser's time grows with them


def scalars_equal(answer: str, gold: str) -> bool:
  """True if the answer is written out as gold and has its value."""
  if not allowed(answer) or _two_cases(answer) or _two_cases(gold):
    return False
  found, right = parsed(answer), parsed(gold)
  if found is None or right is None or not small(found):
    return False
  if found.free_symbols != right.free_symbols:
    return False
  try:
    return _written_out(found, right) and math_values.same(found, right)
  except (ArithmeticError, AttributeError, TypeError, ValueError):
    return False  # what SymPy cannot compare is not a number


def equations_equal(answer: list[str], gold: list[str]) -> bool:
  """Two sides each; True if left - right agree up to a constant factor."""
  if not all(map(allowed, answer)) or any(
    _two_cases(''.join(sides)) for sides in (answer, gold)
  ):
    return False
  sides = [parsed(text) for text in (*answer, *gold)]
  if None in sides or not all(map(small, sides)):
    return False
  symbols = sides[2].free_symbols | sides[3].free_symbols
  if sides[0].free_symbols | sides[1].free_symbols != symbols or not symbols:
    return False
  return math_values.proportional(tuple(sides[:2]), tuple(sides[2:]))


def rational(text: str) -> Fraction | None:
  """The exact value of a formula of rational numbers, or None."""
  tree = parsed(text) if allowed(text) else None
  return None if tree is None else math_values.rational(tree)


def value_text(text: str) -> str:
  """Symbols and values of a formula, as `math_values.text_of`; '' without."""
  tree = parsed(text) if allowed(text) else None
  if tree is None or not small(tree):
    return ''
  return math_values.text_of(tree)


def allowed(text: str) -> bool:
  """Returns whether the parser may read it: known commands, short exponents."""
  if _nesting(text) > _MAX_NESTING or len(text) > _MAX_CHARACTERS:
    return False
  # More bars: which of them open is found by search.
  if text.count('|') > 4 or '!' in text or '\\' in _COMMAND.sub('', text):
    return False
  if not set(_COMMAND.findall(text)) <= _COMMANDS:
    return False
  if len(re.findall(r'\^|\*\*', text)) != len(_EXPONENT.findall(text)):
    return False
  exponents = [m[1] or '' for m in _EXPONENT.finditer(text)]
  return not re.search(r'\d{41}', text) and not any(
    re.search(r'\d{3}', exponent) for exponent in exponents
  )


def _two_cases(text):
  """Returns whether a letter is there as R and as r, which the parser takes for
  one.
  """
  letters = set(re.findall('[A-Za-z]', _COMMAND.sub('', text)))
  return len({letter.lower() for letter in letters}) < len(letters)


def _nesting(text):
  """The largest depth of brackets."""
  depths = itertools.accumulate((c in '([{') - (c in ')]}') for c in text)
  return max(depths, default=0)


@functools.lru_cache(maxsize=4096)
def parsed(text: str) -> Any:
  """The unevaluated expression, or None."""
  import sympy

  for found in parse_math(text):
    if isinstance(found, sympy.Expr) and not found.has(sympy.nan, sympy.zoo):
      return _with_powers_of_e(found) if found.has(sympy.exp) else found
  return None


def _with_powers_of_e(tree):
  """e^{-1} as a power, as it is in 1/e; the parser writes exp(-1)."""
  import sympy

  if not tree.args:
    return tree
  args = [_with_powers_of_e(part) for part in tree.args]
  if isinstance(tree, sympy.exp) and args[0].is_Rational:
    e = sympy.E
    return e if args[0] == 1 else sympy.Pow(e, args[0], evaluate=False)
  if args == list(tree.args):
    return tree
  return tree.func(*args, evaluate=False)


def parse_math(text: str) -> list:
  """Returns what math-verify reads in a formula: expressions, then text."""
  # Its time limits use signals, which need the main thread, so they are off.
  return math_verify().parse(f'${text}$', parsing_timeout=None)


def math_verify() -> Any:
  """The module math-verify (0.8 s), or ImportError saying what to do."""
  try:
    import math_verify as library
  except ImportError as error:
    raise ImportError(
      "verifier='math' needs the package math-verify: "
      "pip install 'math-verify[antlr4_13_2]'"
    ) from error
  import logging

  # It warns that its time limits are off: see parse_math.
  for name in ('math_verify.parser', 'math_verify.grader'):
    logging.getLogger(name).setLevel(logging.ERROR)
  return library


def small(tree: Any) -> bool:
  """Returns whether its values can be computed at once: few leaves, small
  powers.
  """
  import sympy

  def depth(node):
    return 1 + max(map(depth, node.args), default=0)

  leaves = sum(not node.args for node in sympy.preorder_traversal(tree))
  if leaves > _MAX_LEAVES or depth(tree) > _MAX_DEPTH:
    return False
  for node in sympy.preorder_traversal(tree):
    if node.is_Pow:
      base, exponent = node.args
      if exponent.has(sympy.Pow) and not exponent.free_symbols:
        if any(p.args[1] != -1 for p in exponent.atoms(sympy.Pow)):
          return False
      if not exponent.free_symbols and not base.free_symbols:
        if base.has(sympy.Pow) and abs(exponent) > 4:
          return False
      if exponent.is_Number and abs(exponent) > _MAX_POWER * (
        10 if base.is_Symbol or base.is_Integer else 1
      ):
        return False
  return True


def _factors(tree) -> Iterator[tuple[Any, Any]]:
  """(base, exponent) of a product, flattened, without signs."""
  import sympy

  if isinstance(tree, sympy.UnevaluatedExpr):
    yield from _factors(tree.args[0])
  elif tree.is_Mul:
    for one in tree.args:
      yield from _factors(one)
  elif tree.is_Pow and tree.args[1].is_number:
    base, exponent = tree.args
    if exponent == -1:
      for inner, power in _factors(base):
        yield inner, -power
    else:
      yield base, exponent
  elif tree != -1:
    yield tree, sympy.Integer(1)


def _terms(tree):
  if tree.is_Add:
    for one in tree.args:
      yield from _terms(one)
  else:
    yield tree


def _names(tree):
  """Functions and bases of powers, of which an answer may have no others."""
  import sympy

  nodes = list(sympy.preorder_traversal(tree))
  kinds = {type(n).__name__ for n in nodes if n.is_Function}
  if any(n is sympy.E or isinstance(n, sympy.exp) for n in nodes):
    kinds.add('e')
  factors = [list(_factors(n)) for n in nodes if not n.is_Add and n.args]
  bases = {
    str(b)
    for product in factors
    for b, e in product
    if b.is_Rational and e.is_Integer and abs(e) > 1
  }
  return kinds, bases


def _counts(tree):
  """Numbers of things in a tree of which an answer may have no more."""
  import sympy

  nodes = list(sympy.preorder_traversal(tree))
  factors = [list(_factors(n)) for n in nodes if not n.is_Add and n.args]

  def is_sum(base):
    return base.is_Add

  return {
    'products in sums': sum(
      any(b.is_Add for b, _ in _factors(term))
      for n in nodes
      if n.is_Add
      for term in n.args
      if not term.is_Add
    ),
    'symbols': sum(bool(n.is_Symbol) for n in nodes),
    'powers of numbers': sum(
      bool(n.args[0].is_Rational and n.args[1].is_Integer and n.args[1] != -1)
      for n in nodes
      if n.is_Pow
    ),
    'powers of sums': max(
      (abs(e) for p in factors for b, e in p if is_sum(b) and e.is_Integer),
      default=1,
    ),
    'sums below': sum(
      bool(is_sum(b) and e.is_negative) for p in factors for b, e in p
    ),
    'roots of sums': sum(
      is_sum(b) and not e.is_Integer for p in factors for b, e in p
    ),
    'functions': sum(bool(n.is_Function) for n in nodes),
  }


def _sums(tree):
  """Returns how many sums with symbols or roots a product has, with
  multiplicity.
  """
  return sum(
    int(e) if e.is_Integer and e > 0 else 1
    for base, e in _factors(tree)
    if base.is_Add
  )


def _written_out(tree, gold):
  import sympy

  if not all(map(set.issubset, _names(tree), _names(gold))):
    return False
  shape, right = _counts(tree), _counts(gold)
  right['functions'] += bool(right['functions'])
  right['symbols'] += bool(right['symbols'])
  if any(shape[name] > right[name] for name in shape):
    return False
  factored = _sums(gold)
  is_sum = len(list(_terms(gold))) > 1
  if factored > 1 and _sums(tree) < factored:
    return False
  if is_sum and len(list(_terms(tree))) > len(list(_terms(gold))):
    return False
  if not is_sum and factored == 0 and len(list(_terms(tree))) > 1:
    return False
  for node in sympy.preorder_traversal(tree):
    if node.is_Add and not _terms_differ(node):
      return False
    if node.is_Mul or node.is_Pow:
      if not _is_simple_product(node, max(factored, 1)):
        return False
  return True


def _terms_differ(tree):
  """No two terms are multiples of each other, such as 2 + 3 or x + 2x."""
  seen = set()
  for term in _terms(tree):
    # Without the content: what is left of x/2 and 3x is x.
    key = frozenset(
      (str(b), str(e)) for b, e in _factors(term) if not _is_rational(b, e)
    )
    if key in seen:
      return False
    seen.add(key)
  return True


def _is_rational(base, exponent):
  return base.is_Rational and exponent.is_Integer


def _is_simple_product(tree, sums):
  """One number above and below, no base twice, roots that do not combine."""
  import sympy

  if tree.is_Pow and tree.args[1] != -1:
    if tree.args[1] == 1 or _is_power_of_number(tree.args[0]):
      return False
  if not _is_cancelled(tree):
    return False
  above = below = 0
  bases: dict[Any, Any] = {}  # and their exponents
  indices = set()
  for base, exponent in _factors(tree):
    if base.is_Number and exponent.is_Integer:
      above += bool(exponent.is_positive)
      below += bool(exponent.is_negative)
    elif base.is_Rational:
      value = sympy.Pow(base, exponent)  # evaluated: small numbers
      if value.is_Rational or (exponent < 0 and not value.is_Pow):
        if (exponent > 0 or value.is_Rational) or not _is_reduced(value):
          return False
      if exponent in indices:
        return False
      indices.add(exponent)
    elif base in bases and not _is_rationalized(exponent, bases[base]):
      return False
    else:
      bases[base] = exponent
  only_numbers = not bases and not indices
  if only_numbers and above + below > 2:
    return False
  return above <= 1 and below <= 1 and _sums(tree) <= sums


def _is_rationalized(one, other):
  """The exponents of n in sqrt(n) / n, without a root below, or n sqrt(n)."""
  root, power = (other, one) if one.is_Integer else (one, other)
  return power.is_Integer and 0 < root < 1


def _is_power_of_number(tree):
  return bool(tree.is_Pow and tree.args[0].is_number and tree.args[1] != -1)


def _is_cancelled(tree):
  """No number below divides out: neither 2pi / 2 nor (4k + 4) / 2 is left."""
  above, below, sums = 1, 1, []
  for base, exponent in _factors(tree):
    if base.is_Integer and exponent == 1:
      above *= int(base)
    elif base.is_Integer and exponent == -1:
      below *= int(base)
    elif base.is_Add and exponent == 1:
      sums.append(base)
  contents = [
    math.gcd(*(_coefficient(term) for term in _terms(one))) for one in sums
  ]
  if len(list(_factors(tree))) == 2 and not sums and above != 1 != below:
    return True  # 2/4 in a sum or below a root
  return math.gcd(above * math.prod(contents), below) == 1


def _coefficient(term):
  found = 1
  for base, exponent in _factors(term):
    if base.is_Integer and exponent == 1:
      found *= int(base)
    elif base.is_Rational:
      return 1
  return found


def _is_reduced(value):
  """1/sqrt(3) = sqrt(3)/3 is; 1/sqrt(125) = sqrt(5)/25 is not."""
  number, root = value.as_coeff_Mul()
  return root.is_Pow and number.is_Rational and number.q == root.args[0]
