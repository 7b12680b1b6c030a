r"""Checks whether a mathematical answer in LaTeX equals the right one.

Structure is read from the text: tuples and intervals are ordered and keep
their brackets, sets and bare lists are unordered, matrices keep their shape,
inequalities have two directions and may be written as intervals.
What remains are scalars. If the right one is a rational number, the answer must
be a numeral: an integer, a decimal, a fraction (not for an integer), a mixed
number or 2.5 \times 10^{3}; nothing is evaluated. Decimals are compared as
`numerals.equal` says. Other scalars are parsed by math-verify, must be written
out as `math_forms` says, and are compared by their exact values, with symbols
at fixed points. What could take long is refused before.

Limits: units after a number are ignored, 50\% equals 50 and 0.5, a number
without a base is decimal (52 is not 52_8), relations other than `=` and those
of order must agree as text.
"""

from fractions import Fraction
import re

from rl_jax.tasks import math_forms, numerals
from rl_jax.tasks import math_relations as relations
from rl_jax.tasks import math_spelling as spelling
from rl_jax.tasks.numerals import Numeral

_MAX_CHARACTERS = 300
_BASE = re.compile(r'\(?([0-9A-Za-z]+)\)?_\{?(\d{1,2})\}?', re.ASCII)
_MATRIX = re.compile(r'\\begin\{([pb])matrix\}(.*)\\end\{\1matrix\}', re.DOTALL)
# (x, y) = (1, 2)
_NAMED_TUPLE = re.compile(r'\(\s*[a-z](?:\s*,\s*[a-z])*\s*\)\s*=(?=\s*\()')
_UNORDERED = ('set', 'union', 'unequal')


def equal(answer: str, gold: str, tolerance: float = 1e-6) -> bool:
  """True if the answer is a written-out form of the right one.

  tolerance: for a right answer that is rational and no integer, see
  `numerals.equal`.
  """
  if len(answer) > max(_MAX_CHARACTERS, 2 * len(gold)):
    return False
  answer, gold = spelling.clean(answer), spelling.clean(gold)
  return spelling.squeezed(answer) == spelling.squeezed(gold) or _equal(
    answer, gold, tolerance
  )


def normal_form(answer: str) -> str:
  """A text that answers of equal value share, of the same kind and shape.

  A numeral is its value, a formula its value at fixed points (formulas and
  numerals differ, as for `equal`), a set is sorted, 50% is 50; what cannot be
  evaluated within the limits is its own text.
  """
  if len(answer) > _MAX_CHARACTERS:
    return spelling.squeezed(answer)
  return _normal(spelling.clean(answer))


def taken_apart(text: str) -> tuple[str, list[str]]:
  """(kind, parts) of a formula without markup; the kind of one is 'scalar'."""
  return _parts(_without_names(text))


def _normal(text):
  text = _without_names(text)
  sides = text.split('=')
  if len(sides) == 2 and relations.SYMBOL.fullmatch(sides[0]):
    text = sides[1]
  if '=' in text:
    return spelling.squeezed(text)
  kind, parts = _parts(text)
  if kind == 'scalar':
    return _normal_scalar(parts[0].removeprefix('+').strip())
  forms = [_normal(part) for part in parts]
  if kind in _UNORDERED:
    forms.sort()
  return f'{kind}: ' + '; '.join(forms)


def _normal_scalar(text):
  found = numerals.parse(text.removesuffix('%'))
  if found is not None:
    return str(found.value)
  return (
    spelling.words(text)
    or math_forms.value_text(text)
    or spelling.squeezed(text)
  )


def _equal(answer, gold, tolerance):
  answer, gold = _without_names(answer), _without_names(gold)
  orders = [relations.has_order(text) for text in (answer, gold)]
  if orders[0] != orders[1]:
    answer = relations.as_intervals(answer) if orders[0] else answer
    gold = relations.as_intervals(gold) if orders[1] else gold
    if answer is None or gold is None:
      return False
  lists = any(len(spelling.split(text, ',')) > 1 for text in (answer, gold))
  if '=' in answer + gold and not lists:
    return _equations(answer, gold, tolerance)
  (kind, parts), (right_kind, right) = _parts(answer), _parts(gold)
  if kind != right_kind or len(parts) != len(right):
    return False
  if kind == 'scalar':
    return _scalars(parts[0], right[0], tolerance)
  if lists and ('=' in answer) != ('=' in gold):
    return False  # x = 1, y = 2 is not {1, 2}
  if kind not in _UNORDERED:
    pairs = zip(parts, right, strict=True)
    return all(_equal(a, g, tolerance) for a, g in pairs)
  for one in right:
    found = [a for a in parts if _equal(a, one, tolerance)]
    if not found:
      return False
    parts.remove(found[0])
  return True


def _without_names(text):
  """1, 2 for x = 1, x = 2 and for x = 1, 2; other text is unchanged."""
  text = _NAMED_TUPLE.sub('', text)
  sides = [piece.partition('=') for piece in spelling.split(text, ',')]
  first, *others = ((spelling.squeezed(name), bool(x)) for name, x, _ in sides)
  if not others or not first[1] or not relations.SYMBOL.fullmatch(sides[0][0]):
    return text
  if not (set(others) == {first} or not any(named for _, named in others)):
    return text
  values = [value if named else name for name, named, value in sides]
  return text if any('=' in value for value in values) else ','.join(values)


def _equations(answer, gold, tolerance):
  """The verdict where one of them has a sign of equality."""
  sides = [_named_first(text) for text in (answer, gold)]
  left, right = (relations.SIGN.findall(text) for text in (answer, gold))
  if len(left) > 1 or len(right) > 1 or set(left + right) != {'='}:
    return False  # chains are equal as text only
  names = [relations.SYMBOL.fullmatch(side[0]) is not None for side in sides]
  if left and right:
    if names == [True, True]:
      same = spelling.squeezed(sides[0][0]) == spelling.squeezed(sides[1][0])
      return same and _equal(sides[0][1], sides[1][1], tolerance)
    if names[1] and numerals.parse(sides[1][1]):
      return False  # 2x = 10 for x = 5
    return math_forms.equations_equal(*sides)
  which = 0 if left else 1
  if not names[which] or spelling.words(gold):
    return False
  answer, gold = (side[-1] for side in sides)
  return _equal(answer, gold, tolerance)


def _named_first(text):
  """The sides of an equation, as x = 5 also where it is 5 = x."""
  sides = text.split('=')
  names = [relations.SYMBOL.fullmatch(side) is not None for side in sides]
  return sides[::-1] if names == [False, True] else sides


def _parts(text):
  """(kind, parts); a kind of two letters is that of the brackets."""
  text = text.strip()
  if match := _MATRIX.fullmatch(text):
    rows = [row.split('&') for row in match[2].split('\\cr') if row.strip()]
    shape = ','.join(str(len(row)) for row in rows)
    return f'matrix {shape}', [entry for row in rows for entry in row]
  pieces = spelling.split(text, '\\cup')
  if len(pieces) > 1:
    return 'union', pieces
  inside = text[2:-2].strip()
  if text.startswith('\\{') and text.endswith('\\}'):
    return 'set', _with_signs(spelling.split(inside, ',')) if inside else []
  inside = text[1:-1]
  brackets = text[:1] + text[-1:]
  if brackets in ('()', '(]', '[)', '[]') and spelling.balanced(inside):
    pieces = spelling.split(inside, ',')
    if len(pieces) > 1:
      return brackets, pieces
  if ',' in text and numerals.parse(text):  # 1,234
    return 'scalar', [text]
  signed = _with_signs(spelling.split(text, ','))
  return ('set', signed) if len(signed) > 1 else _parts_of_one(signed[0])


def _parts_of_one(text):
  """The kind and the parts of what is neither a list nor in brackets."""
  signs = relations.SIGN.findall(text)
  if not signs or '=' in signs:
    return 'scalar', [text]
  if signs == ['\\ne']:
    return 'unequal', text.split('\\ne')
  found = relations.ordered(text)
  if found is None:
    return f'relation {spelling.squeezed(text)}', []
  return ' '.join(['relation', *found[1]]), found[0]


def _with_signs(pieces):
  found = []
  for piece in pieces:
    if '\\pm' in piece:
      found += [piece.replace('\\pm', '+'), piece.replace('\\pm', '-')]
    else:
      found.append(piece)
  return found


def _scalars(answer, gold, tolerance):
  answer, gold = (text.removeprefix('+').strip() for text in (answer, gold))
  if spelling.squeezed(answer) == spelling.squeezed(gold):
    return bool(answer)
  words = spelling.words(gold)
  is_text = '\\' in gold or '\\' in answer or len(words or '') > 1
  if words and words == spelling.words(answer) and is_text:
    return True
  if re.fullmatch(spelling.WORD, gold):
    return False
  bases = [_BASE.fullmatch(text) for text in (answer, gold)]
  if any(match and match[1].isdigit() for match in bases):
    written = [(m[2], m[1].lstrip('0')) for m in bases if m]
    return len(written) == 2 and written[0] == written[1]
  found = numerals.parse(answer.removesuffix('%'))
  right = numerals.parse(gold.removesuffix('%'))
  if right is None and found is not None:
    right = _computed(gold)
  if right is None:
    return math_forms.scalars_equal(answer, gold)
  if found is None:
    return False
  scales = {Fraction(1)}
  if answer.endswith('%') != gold.endswith('%'):
    scales.add(Fraction(100 if gold.endswith('%') else 1, 1))
    scales.add(Fraction(1, 100) if answer.endswith('%') else Fraction(1))
  return any(_numbers(found, s, right, tolerance) for s in scales)


def _computed(gold):
  """The exact number that a formula such as 2^{-20} is, or None."""
  value = math_forms.rational(gold)
  return None if value is None else Numeral(value, numerals.QUOTIENT)


def _numbers(found, scale, right, tolerance):
  whole = right.value.denominator == 1
  if whole and scale == 1 and found.form in numerals.OPEN_FORMS:
    return False
  scaled = found._replace(value=found.value * scale)
  return numerals.equal(scaled, right, tolerance)
