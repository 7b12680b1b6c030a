r"""One spelling of what LaTeX has several for, and texts taken apart."""

import re

from rl_jax.tasks import numerals

WORD = (
  r'\\(?:text|mbox|mathrm|textrm|textbf|textit|mathbf|boldsymbol)'
  r'\s*\{([^{}]*)\}'
)
_PLAIN_WORD = r'\\(?:text|mbox|mathrm|textrm)\s*\{\s*,?\s*'
_REPLACED = (
  (r'\\cr\s*\[\s*-?[\d.]+\s*[a-z]{2}\s*\]|\\hline(?![a-z])', r'\\cr '),
  (r'(?<=\d)\\[!,;:](?=\d)', ' '),
  (r'\\left(?![a-z])|\\right(?![a-z])|\\[!,;:]|\\displaystyle', ''),
  (r'\\ |~|\\q?quad|\s+', ' '),
  (r'\\[dtc]frac', r'\\frac'),
  (r'\^\s*(\\circ|\{\s*\\circ\s*\})|°|\\\$|\$', ''),
  (r'\\leqslant(?![a-z])|\\leq(?![a-z])|≤|⩽', r'\\le '),
  (r'\\geqslant(?![a-z])|\\geq(?![a-z])|≥|⩾', r'\\ge '),
  (r'\\neq(?![a-z])|≠', r'\\ne '),
  (r'\\lt(?![a-z])', '<'),
  (r'\\gt(?![a-z])', '>'),
  (r'\\%', '%'),
  ('π', r'\\pi '),
  ('∞', r'\\infty '),
  (r'∅|\\(?:emptyset|varnothing)(?![a-z])', r'\\{\\}'),
  (r'\\langle(?![a-z])', '('),
  (r'\\rangle(?![a-z])', ')'),
  (r'\\(?:mathrm|operatorname|text|textrm)\s*\{([ei])\}', r'\1 '),
  # Lists in words, also with a comma before the last.
  (rf',?\s*{_PLAIN_WORD}(?:and|or|,|\\?&)\s*\}}\s*', ', '),
  (
    r'(?<=[\w)}\]])(?<![A-Za-z]),?\s+(?:and|or)\s+'
    r'(?=[-+\\({\[\d]|[A-Za-z]\s*[=<>\\])',
    ', ',
  ),
  (r'\\(begin|end)\{[pb]smallmatrix\}', r'\\\1{pmatrix}'),
)
# m/s^2 after a number: words with powers, m^2 also within one.
_UNIT = re.compile(
  r'(?<=[\w})%])(?:\s*(?:/|\\cdot)?\s*\\(?:text|mbox|mathrm|textrm|textbf)'
  r'\s*\{(?:[^{}]|\{[^{}]*\})*\}(?:\s*\^\s*\{?-?\d\}?)?)+$'
)
# The same without a command, after a number: '204 cm', '12 square feet'. Units
# of one letter may be variables and stay.
_NAMED_UNITS = (
  r'[kcmd]m|[km]g|m[ls]|k?hz|mph|kmph|ft|yd|lbs?|hrs?|mins?|secs?|rad|inch|'
  r'(?:inche|feet|foot|yard|mile|(?:centi|milli|kilo)?met(?:er|re)|lit(?:er|re)|'
  r'(?:kilo)?gram|pound|ounce|ton|second|minute|hour|day|week|month|year|cent|'
  r'dollar|degree|unit|percent|point)s?'
)
_LETTERS_UNIT = re.compile(
  rf'(?:(?<=[\d)}}])|(?<=\\pi))\s*(?:(?:square|sq\.?|cubic|cu\.?)\s+)?(?:{_NAMED_UNITS})'
  rf'(?:\s*\^\s*\{{?[23]\}}?)?(?:\s*(?:/|\bper\b)\s*(?:{_NAMED_UNITS}|h|s))?$',
  re.IGNORECASE,
)
# A matrix as others write it, with brackets around it or none.
_ARRAY = re.compile(
  r'([(\[]?)\s*\\begin\{(array|matrix|smallmatrix)\}\s*(?:\{[clr|\s]*\})?'
  r'(.*?)\\end\{\2\}\s*([)\]]?)',
  re.DOTALL,
)
_OPEN, _CLOSE = '([{', ')]}'


def clean(text: str) -> str:
  """The formula without markup that means nothing, and without its unit."""
  text = text.strip()
  for begin, end in (('\\(', '\\)'), ('\\[', '\\]')):
    if text.startswith(begin) and text.endswith(end):
      text = text[2:-2]
  text = re.sub(r'\\\\', r'\\cr ', numerals.spelled(text))  # rows of a matrix
  text = numerals.joined(text, commas=False)
  for pattern, new in _REPLACED:
    text = re.sub(pattern, new, text)
  text = _ARRAY.sub(_matrix, text)
  text = re.sub(r'^\s*[a-zA-Z]\s*\\in(?![a-z])', '', text.strip()).strip()
  text = re.sub(r'^\\mathbb\s*\{?R\}?$', r'(-\\infty,\\infty)', text)
  text = _UNIT.sub('', text.removesuffix('.').strip()).strip()
  text = _LETTERS_UNIT.sub('', text)
  match = re.fullmatch(rf'(?:{WORD}|\((.*)\))', text)
  inside = (match[1] or match[2] or '').strip('() ') if match else ''
  return inside if ',' not in inside and numerals.parse(inside) else text


def _matrix(match):
  begin, _, rows, end = match.groups()
  if bool(begin) == bool(end):
    begin = end = ''
  return rf'{begin}\begin{{pmatrix}}{rows}\end{{pmatrix}}{end}'


def squeezed(text: str) -> str:
  """Removes spaces, but for those that keep 1 1/2 from being 11/2."""
  return re.sub(r'(?<!\d) +| +(?!\d)', '', re.sub(' +', ' ', text))


def words(text: str) -> str | None:
  """Text without its command, brackets and case, or None for a formula."""
  text = re.sub(WORD, r'\1', text).strip()
  match = re.fullmatch(r'\(?([A-Za-z][A-Za-z ]*)\)?', text)
  return ' '.join(match[1].split()).casefold() if match else None


def balanced(text: str) -> bool:
  """Returns whether every bracket is closed, and none before it is opened."""
  depth = 0
  for letter in text:
    depth += (letter in _OPEN) - (letter in _CLOSE)
    if depth < 0:
      return False
  return depth == 0


def split(text: str, separator: str) -> list[str]:
  """Splits at the separators outside of brackets."""
  pieces, depth, begin = [], 0, 0
  for i, letter in enumerate(text):
    depth += (letter in _OPEN) - (letter in _CLOSE)
    if depth == 0 and text.startswith(separator, i):
      pieces.append(text[begin:i].strip())
      begin = i + len(separator)
  return [*pieces, text[begin:].strip()]
