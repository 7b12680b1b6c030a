r"""Checks whether an answer with the right value is copied from its question.

\sqrt{12} is a form of 2\sqrt{3}, but not if the question asks to simplify it,
in whatever spelling: (\sqrt{12}), 1\sqrt{12} and 12^{1/2} are the same tree.
3/20 and 6/40 do not count if \frac{3}{20} is to be written as a decimal.
"""

from fractions import Fraction
import functools
import math
import re
from typing import Any

from rl_jax.tasks import math_answers, math_forms, math_values, numerals
from rl_jax.tasks import math_relations as relations
from rl_jax.tasks import math_spelling as spelling

_MAX_CHARACTERS = 300  # of an answer, and of a formula of a question
_MAX_FORMULAS = 50
_MATH = re.compile(
  r'\$\$(.+?)\$\$|\$(.+?)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]', re.DOTALL
)
_HELD = re.compile(
  r'(?:\d+ ?)?\\frac *(?:\{ *-?\d+ *\}|\d) *(?:\{ *\d+ *\}|\d)|'
  r'(?:\d+ )?\d+ ?/ ?\d+|'
  r'\d+\.\d*\\overline\{\d+\}|'
  r'\d+(?:\.\d+)? *\\(?:times|cdot) *10 *\^ *(?:\{ *-?\d+ *\}|\d)|'
  r'\d+(?:\.\d+)?|\.\d+',
  re.ASCII,
)
# Kinds of numerals, and how a question asks for one.
_FRACTION, _FORMULA, _PERCENT = 'fraction', 'formula', 'percent'
_KINDS = {
  numerals.QUOTIENT: _FRACTION,
  numerals.MIXED: _FRACTION,
  numerals.UNSCALED: numerals.SCIENTIFIC,
}
_ASKED = {
  numerals.DECIMAL: r'decimal|standard|ordinary',
  numerals.REPEATING: 'decimal',
  numerals.SCIENTIFIC: 'scientific',
  _FRACTION: r'fraction|mixed|ratio|lowest|simplest',
  _PERCENT: 'percent',
  _FORMULA: r'power|exponent|factor|form',
}


def copied(answer: str, gold: str, question: str) -> bool:
  """Returns whether a number or a formula of the question is given as its
  answer.

  The answer must be one that `math_answers.equal` finds equal. The right
  answer's own text or tree is never a copy, and a number of another kind than
  the right one only if the question asks for that kind.
  """
  if len(answer) > _MAX_CHARACTERS:
    return False
  return _copied(spelling.clean(answer), spelling.clean(gold), question)


def _copied(answer, gold, question):
  answer, gold = _unnamed(answer), _unnamed(gold)
  if spelling.squeezed(answer) == spelling.squeezed(gold):
    return False
  found, right = _numeral(answer), _numeral(gold)
  if found is not None:
    return _converted(found, right, question)
  kind, parts = math_answers.taken_apart(answer)
  right_kind, golds = math_answers.taken_apart(gold)
  if kind == right_kind != 'scalar' and len(parts) == len(golds):
    if any(_copied(*pair, question) for pair in zip(parts, golds, strict=True)):
      return True
  return _formula_copied(answer, gold, question)


def _unnamed(text):
  """5 for x = 5."""
  sides = text.split('=')
  named = len(sides) == 2 and relations.SYMBOL.fullmatch(sides[0])
  return sides[1].strip() if named else text


def _numeral(text):
  """(absolute value, kind, digits) of a numeral, or None; 15% is 0.15."""
  percent = text.endswith('%')
  found = numerals.parse(text.removesuffix('%'))
  if found is None:
    return None
  kind = _PERCENT if percent else _KINDS.get(found.form, found.form)
  value = found.value / 100 if percent else found.value
  return abs(value), kind, ''.join(re.findall(r'\d', text))


@functools.lru_cache(maxsize=1024)
def _numerals(question):
  """All numerals of a question."""
  text = numerals.joined(spelling.clean(question.replace(r'\div', '/')))
  found = []
  for match in _HELD.finditer(text.replace('\u00f7', '/')):
    percent = re.match(r' ?(?:%|percent)', text[match.end() :])
    found.append(_numeral(match[0] + '%' * bool(percent)))
  return frozenset(one for one in found if one is not None)


def _converted(found, right, question):
  """Returns whether a numeral is in the kind that the question has, not in the
  right.

  right: None for a formula, such as 2^{10} for 1024.
  """
  value, kind, digits = found
  held = _numerals(question)

  def asked(name):
    return re.search(_ASKED[name], question, re.IGNORECASE)

  fractions = {one for one in held if one[:2] == (value, _FRACTION)}
  right_value, right_kind, right_digits = right or (value, _FORMULA, '')
  if kind == right_kind:
    if kind != _FRACTION or digits == right_digits:
      return False
    others = {one for one in fractions if one[2] != right_digits}
    return bool(others) and (found in others or not _is_reduced(value, digits))
  if kind == _FRACTION and right_kind == numerals.DECIMAL:
    return bool(fractions or asked(right_kind))
  if kind == _FRACTION:
    return bool(fractions)
  is_held = any(one[:2] == (value, kind) for one in held)
  return is_held and value == right_value and bool(asked(right_kind))


def _is_reduced(value, digits):
  """Returns whether a quotient or mixed number with these digits is in lowest
  terms.
  """
  top, bottom = value.numerator, value.denominator
  forms = (f'{top}{bottom}', f'{top // bottom}{top % bottom}{bottom}')
  return digits in forms


def _formula_copied(answer, gold, question):
  answers, golds = _keys(answer), _keys(gold)
  same = bool(answers) and answers == golds
  if same and _signs(answer) == _signs(gold):
    return False
  if _is_part(spelling.squeezed(answer), question):
    return True
  if same:
    return False
  held = bool(answers & _keys_of(question))
  return held or _less_simple(answer, gold, question)


def _signs(text):
  """Returns how many powers, negative ones and roots are written."""
  return [text.count(sign) for sign in ('^', '^{-', '\\sqrt')]


def _is_part(answer, question):
  """Returns whether the text of a formula is in the question, with whole
  numbers.
  """
  if not re.search(r'[\\^/=+*-]', answer):
    return False
  begin = r'(?<![\d.])' if answer[0].isdecimal() else ''
  end = r'(?!\d)' if answer[-1].isdecimal() else ''
  text = spelling.squeezed(spelling.clean(question))
  return re.search(begin + re.escape(answer) + end, text) is not None


@functools.lru_cache(maxsize=1024)
def _pieces(question):
  """The formulas of a question, without words, and what commas separate."""
  found = []
  for match in list(_MATH.finditer(question))[:_MAX_FORMULAS]:
    (text,) = filter(None, match.groups())
    text = re.sub(spelling.WORD, ',', spelling.clean(text))
    found += [part.strip(' .;:?') for part in spelling.split(text, ',')]
  return [part for part in found if part and len(part) <= _MAX_CHARACTERS]


@functools.lru_cache(maxsize=1024)
def _trees(question):
  """The trees of a question's formulas, and of the sides of its relations."""
  sides = [
    x for piece in _pieces(question) for x in relations.SIGN.split(piece)
  ]
  trees = [math_forms.parsed(x) for x in sides if math_forms.allowed(x)]
  return [x for x in trees if x is not None and math_forms.small(x)]


@functools.lru_cache(maxsize=1024)
def _keys_of(question):
  """The keys of its equations, and of all parts that are not bare numbers."""
  import sympy

  nodes = {
    node
    for tree in _trees(question)
    for node in sympy.preorder_traversal(tree)
    if node.args
  }
  equations = (_keys(piece) for piece in _pieces(question) if '=' in piece)
  return frozenset(map(_key, nodes)).union(*equations)


def _keys(text):
  """The key of a formula, or the keys of both sides of an equation."""
  sides = text.split('=')
  if not all(map(math_forms.allowed, sides)):
    return frozenset()
  trees = [math_forms.parsed(side) for side in sides]
  if None in trees:
    return frozenset()
  keys = frozenset(map(_key, trees))
  return keys if len(sides) == 1 else frozenset([keys])


def _less_simple(answer, gold, question):
  r"""Returns whether a number of the question is only rewritten, with other
  roots.

  That is \frac{\sqrt{968}}{2} for \sqrt{242}, or \sqrt{1/2} for 1/\sqrt{2}, of
  which the right answers have smaller roots, and none below.
  """
  trees = [
    math_forms.parsed(x) for x in (answer, gold) if math_forms.allowed(x)
  ]
  if len(trees) < 2 or None in trees or any(x.free_symbols for x in trees):
    return False
  found, right = map(_roots, trees)
  if found[0] <= right[0] and found[1] <= right[1]:
    return False
  return any(
    tree.args and not tree.free_symbols and math_values.same(tree, trees[1])
    for tree in _trees(question)
    if _key(tree) != _key(trees[1])
  )


def _roots(tree):
  """(the largest number below a root, roots in denominators)."""
  import sympy

  largest, below = 0, 0
  for node in sympy.preorder_traversal(tree):
    base, exponent = node.args if node.is_Pow else (node, sympy.Integer(1))
    power, number = math_values.rational(exponent), math_values.rational(base)
    if power is None:
      continue
    is_root = power.denominator > 1
    if is_root and number is not None:
      largest = max(largest, abs(number.numerator), number.denominator)
      below += number.denominator > 1
    below += power < 0 and (is_root or _has_root(base))
  return largest, below


def _has_root(tree):
  import sympy

  powers = (math_values.rational(x.args[1]) for x in tree.atoms(sympy.Pow))
  return any(x is not None and x.denominator > 1 for x in powers)


def _key(tree: Any) -> tuple:
  """The same for two trees that differ by order and by ones and zeros."""
  sign, factors = _factors(tree, 1)
  if sign > 0 and len(factors) == 1 and factors[0][1] == 1:
    return factors[0][0]
  return ('product', sign, *sorted(factors, key=repr))


def _factors(tree, exponent):
  """(sign, [(key, 1 or -1)]); powers and sums stay whole."""
  if tree.is_Rational or tree.is_Float:
    value = Fraction(str(tree))
    parts = (abs(value.numerator), exponent), (value.denominator, -exponent)
    numbers = [(('number', x), e) for x, e in parts if x != 1]
    return (-1 if value < 0 else 1), numbers
  if tree.is_Mul:
    parts = [_factors(part, exponent) for part in tree.args]
    sign = math.prod(sign for sign, _ in parts)
    return sign, [one for _, factors in parts for one in factors]
  if tree.is_Pow and tree.args[1] in (1, -1):
    return _factors(tree.args[0], exponent * int(tree.args[1]))
  if tree.is_Add:
    terms = [term for term in tree.args if term != 0]
    if len(terms) == 1:
      return _factors(terms[0], exponent)
    return 1, [(('sum', *sorted(map(_key, terms), key=repr)), exponent)]
  if not tree.args:
    return 1, [(('symbol', str(tree)), exponent)]
  return 1, [((type(tree).__name__, *map(_key, tree.args)), exponent)]
