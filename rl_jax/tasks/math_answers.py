r"""Whether a mathematical answer in LaTeX equals the right one.

Structure is read from the text: tuples and intervals are ordered and keep
their brackets, sets and bare lists are unordered, matrices keep their shape.
What remains are scalars. If the right one is a rational number, the answer must
be a numeral: an integer, a decimal, a fraction (not for an integer), a mixed
number or 2.5 \times 10^{3}; nothing is evaluated. Decimals are compared as
`numerals.equal` says. Other scalars are parsed by math-verify, must be written
out as `math_forms` says, and are compared by their exact values, with symbols
at fixed points. What could take long is refused before.

Limits: units after a number are ignored, 50\% equals 50 and 0.5, a number
without a base is decimal (52 is not 52_8), relations other than `=` must agree
as text.
"""

from fractions import Fraction
import re

from rl_jax.tasks import math_forms, numerals
from rl_jax.tasks.numerals import Numeral

_MAX_CHARACTERS = 300
_REPLACED = (
  (r'(?<=\d)\\[!,;:](?=\d)', ' '),
  (r'\\left(?![a-z])|\\right(?![a-z])|\\[!,;:]|\\displaystyle', ''),
  (r'\\ |~|\\quad|\s+', ' '),
  (r'\\[dt]frac', r'\\frac'),
  (r'\^\s*(\\circ|\{\s*\\circ\s*\})|°|\\\$|\$', ''),
  (r'\\(leq|geq|neq)(?![a-z])', lambda m: m[0][:-1]),
  (r'\\%', '%'),
  ('π', r'\\pi '),
)
_WORD = r'\\(?:text|mbox|mathrm|textrm|textbf|textit|mathbf)\s*\{([^{}]*)\}'
_UNIT = re.compile(rf'(?<=[\w}})%])\s*{_WORD}(?:\s*\^\s*\{{?\d\}}?)?$')
_BASE = re.compile(r'\(?([0-9A-Za-z]+)\)?_\{?(\d{1,2})\}?', re.ASCII)
_RELATION = re.compile(r'=|<|>|\\(?:le|ge|ne|lt|gt|approx|equiv)(?![a-z])')
_SYMBOL = re.compile(r'\s*(?:[A-Za-z]|\\[a-z]+)(?:_\{?\w\}?)?(?:\([a-z]\))?\s*')
_MATRIX = re.compile(r'\\begin\{([pb])matrix\}(.*)\\end\{\1matrix\}', re.DOTALL)
_OPEN, _CLOSE = '([{', ')]}'


def equal(answer: str, gold: str, tolerance: float = 1e-6) -> bool:
  """True if the answer is a written-out form of the right one.

  tolerance: for a right answer that is rational and no integer, see
  `numerals.equal`.
  """
  if len(answer) > max(_MAX_CHARACTERS, 2 * len(gold)):
    return False
  answer, gold = _clean(answer), _clean(gold)
  return _squeezed(answer) == _squeezed(gold) or _equal(answer, gold, tolerance)


def normal_form(answer: str) -> str:
  """A text that answers of equal value share, of the same kind and shape.

  A numeral is its value, a formula its value at fixed points (formulas and
  numerals differ, as for `equal`), a set is sorted, 50% is 50; what cannot be
  evaluated within the limits is its own text.
  """
  if len(answer) > _MAX_CHARACTERS:
    return _squeezed(answer)
  return _normal(_clean(answer))


def _normal(text):
  text = _without_names(text)
  sides = text.split('=')
  if len(sides) == 2 and _SYMBOL.fullmatch(sides[0]):
    text = sides[1]
  if _RELATION.search(text):
    return _squeezed(text)
  kind, parts = _parts(text)
  if kind == 'scalar':
    return _normal_scalar(parts[0].removeprefix('+').strip())
  forms = [_normal(part) for part in parts]
  if kind in ('set', 'union'):
    forms.sort()
  return f'{kind}: ' + '; '.join(forms)


def _normal_scalar(text):
  found = numerals.parse(text.removesuffix('%'))
  if found is not None:
    return str(found.value)
  return _words(text) or math_forms.value_text(text) or _squeezed(text)


def copied(answer: str, gold: str, question: str) -> bool:
  """Whether a formula of the question is given as its answer.

  \\sqrt{12} is a form of 2\\sqrt{3}, but not if the question asks to simplify
  it. Decimals, words and the right answer's own text, or another spelling of
  its quotient, are never copies.
  """
  answer, gold = _squeezed(_clean(answer)), _squeezed(_clean(gold))
  found = numerals.parse(answer)
  if answer == gold or (found and found.form not in numerals.FRACTIONS):
    return False
  digits = lambda text: re.findall(r'\d', text)
  right = numerals.parse(gold)
  same = found and right and found.value == right.value
  if same and digits(answer) == digits(gold):
    return False
  is_formula = re.search(r'[\\^/=+*-]', answer) is not None
  return is_formula and answer in _squeezed(_clean(question))


def _clean(text):
  text = text.strip()
  for begin, end in (('\\(', '\\)'), ('\\[', '\\]')):
    if text.startswith(begin) and text.endswith(end):
      text = text[2:-2]
  text = re.sub(r'\\\\', r'\\cr ', numerals.spelled(text))  # rows of a matrix
  text = numerals.joined(text, commas=False)
  for pattern, new in _REPLACED:
    text = re.sub(pattern, new, text)
  text = re.sub(r'^\s*[a-zA-Z]\s*\\in(?![a-z])', '', text.strip())
  text = re.sub(r'\\text\s*\{\s*(?:and|or|,)\s*\}', ',', text)
  text = _UNIT.sub('', text.strip().removesuffix('.').strip()).strip()
  match = re.fullmatch(rf'(?:{_WORD}|\((.*)\))', text)
  inside = (match[1] or match[2] or '').strip('() ') if match else ''
  return inside if ',' not in inside and numerals.parse(inside) else text


def _squeezed(text):
  """Without spaces, but for those that keep 1 1/2 from being 11/2."""
  return re.sub(r'(?<!\d) +| +(?!\d)', '', re.sub(' +', ' ', text))


def _equal(answer, gold, tolerance):
  answer, gold = _without_names(answer), _without_names(gold)
  relation = _relations(answer, gold, tolerance)
  if relation is not None:
    return relation
  kind, parts = _parts(answer)
  right_kind, right = _parts(gold)
  if kind != right_kind or len(parts) != len(right):
    return False
  if kind == 'scalar':
    return _scalars(parts[0], right[0], tolerance)
  if kind not in ('set', 'union'):
    pairs = zip(parts, right, strict=True)
    return all(_equal(a, g, tolerance) for a, g in pairs)
  for one in right:
    found = [a for a in parts if _equal(a, one, tolerance)]
    if not found:
      return False
    parts.remove(found[0])
  return True


def _without_names(text):
  """1, 2 for x = 1, x = 2; other text is unchanged."""
  sides = [piece.partition('=') for piece in _split(text, ',')]
  names = {_squeezed(name) for name, _, _ in sides}
  if len(sides) < 2 or len(names) > 1 or not _SYMBOL.fullmatch(sides[0][0]):
    return text
  values = [value for _, equals, value in sides if equals and '=' not in value]
  return ','.join(values) if len(values) == len(sides) else text


def _relations(answer, gold, tolerance):
  """The verdict if one of them is a relation, else None."""
  left, right = _RELATION.findall(answer), _RELATION.findall(gold)
  if not left and not right:
    return None
  if len(left) > 1 or len(right) > 1 or set(left + right) != {'='}:
    return False  # chains; others are equal as text alone
  sides = [text.split('=') for text in (answer, gold)]
  names = [_SYMBOL.fullmatch(side[0]) is not None for side in sides]
  if left and right:
    if names == [True, True]:
      same = _squeezed(sides[0][0]) == _squeezed(sides[1][0])
      return same and _equal(sides[0][1], sides[1][1], tolerance)
    if names[1] and numerals.parse(sides[1][1]):
      return False  # 2x = 10 for x = 5
    return math_forms.equations_equal(*sides)
  which = 0 if left else 1
  if not names[which] or _words(gold):
    return False
  answer, gold = (side[-1] for side in sides)
  return _equal(answer, gold, tolerance)


def _parts(text):
  """(kind, parts); a kind of two letters is that of the brackets."""
  text = text.strip()
  if match := _MATRIX.fullmatch(text):
    rows = [row.split('&') for row in match[2].split('\\cr') if row.strip()]
    shape = ','.join(str(len(row)) for row in rows)
    return f'matrix {shape}', [entry for row in rows for entry in row]
  pieces = _split(text, '\\cup')
  if len(pieces) > 1:
    return 'union', pieces
  if text.startswith('\\{') and text.endswith('\\}'):
    return 'set', _with_signs(_split(text[2:-2], ','))
  inside = text[1:-1]
  if text[:1] in ('(', '[') and text[-1:] in (')', ']') and _balanced(inside):
    pieces = _split(inside, ',')
    if len(pieces) > 1:
      return text[0] + text[-1], pieces
  if ',' in text and numerals.parse(text):  # 1,234
    return 'scalar', [text]
  pieces = _split(text, ',')
  signed = _with_signs(pieces)
  return ('set' if len(signed) > 1 else 'scalar'), signed


def _with_signs(pieces):
  found = []
  for piece in pieces:
    if '\\pm' in piece:
      found += [piece.replace('\\pm', '+'), piece.replace('\\pm', '-')]
    else:
      found.append(piece)
  return found


def _balanced(text):
  depth = 0
  for letter in text:
    depth += (letter in _OPEN) - (letter in _CLOSE)
    if depth < 0:
      return False
  return depth == 0


def _split(text, separator):
  """At the separators outside of brackets."""
  pieces, depth, begin = [], 0, 0
  for i, letter in enumerate(text):
    depth += (letter in _OPEN) - (letter in _CLOSE)
    if depth == 0 and text.startswith(separator, i):
      pieces.append(text[begin:i].strip())
      begin = i + len(separator)
  return [*pieces, text[begin:].strip()]


def _scalars(answer, gold, tolerance):
  answer, gold = (text.removeprefix('+').strip() for text in (answer, gold))
  if _squeezed(answer) == _squeezed(gold):
    return bool(answer)
  words = _words(gold)
  is_text = '\\' in gold or '\\' in answer or len(words or '') > 1
  if words and words == _words(answer) and is_text:
    return True
  if re.fullmatch(_WORD, gold):
    return False
  bases = [_BASE.fullmatch(text) for text in (answer, gold)]
  if any(match and match[1].isdigit() for match in bases):
    return (
      all(bases)
      and bases[0][2] == bases[1][2]
      and bases[0][1].lstrip('0') == bases[1][1].lstrip('0')
    )
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


def _words(text):
  """Text without its command, brackets and case, or None for a formula."""
  text = re.sub(_WORD, r'\1', text).strip()
  match = re.fullmatch(r'\(?([A-Za-z][A-Za-z ]*)\)?', text)
  return ' '.join(match[1].split()).casefold() if match else None
