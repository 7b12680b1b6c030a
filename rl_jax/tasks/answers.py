"""Extracts the answer of a response and compares it with the right one.

All searches are linear in the length of the text; no pattern backtracks.
"""

import collections
from fractions import Fraction
import re

from rl_jax.tasks import draws, math_answers, numerals

# A number with its operators: '3/4', '1e3' and '- 3' are numbers, '2^10' and
# '3*4' none. A sign only if it subtracts nothing. Numbers that only a space
# separates are found together: '10 000' and '3 1/2' are one number, '5 10' two.
_DIGITS = rf'(?:{numerals.CHAIN}|(?<![\d.])\.\d++)(?:[eE][+-]?\d{{1,2}}\b)?'
_LATEX_FRACTION = (
  rf'\\[dtc]?frac\s*+(?:\{{\s*+[+-]?{_DIGITS}\s*+\}}|\d)'
  rf'\s*+(?:\{{\s*+{_DIGITS}\s*+\}}|\d)'
)
_NUMBER = re.compile(
  r'(?P<sign>(?:(?<![\w).}])-(?:(?<![\d)}]\s.)[ ])?(?:\\?\$)?)?)'
  rf'(?P<run>{_DIGITS}(?:[ ]{_DIGITS})*+'
  rf'(?P<last>\s?{_LATEX_FRACTION}|\s?/\s?{_DIGITS})?|{_LATEX_FRACTION})'
  r'(?P<rest>(?:\s?(?:\^|\*\*?|/|\\times(?![a-z])|\\cdot(?![a-z]))'
  rf'\s{{0,2}}[({{]?-?{_DIGITS}[)}}]?)*[\u00b2\u00b3\u00b9\u2070-\u2079]*)',
  re.ASCII,
)
# After and before these a number is part of a power, a root or a quotient; or,
# if it is 000, of 10, 000, and if it is 1/2, of 3-1/2 or 3 and 1/2.
_INSIDE = re.compile(
  r'(?:\}\s*\{|\^\{?|\\sqrt\s*\{?|(\d[.,]?\s)|(\d(?:-|\s(?:and|&)\s)))$',
  re.ASCII,
)
_GOES_ON = re.compile(r'\}\s*\{|\s?\\(?:pi|sqrt|frac)', re.ASCII)
_DOLLARS = re.compile(r'\$([^$]+)\$')
_MAX_NUMBER_CHARACTERS = 100
_BOX = '\\boxed{'
# Of squad_form: all ASCII punctuation but signs and what is within a number.
_PUNCTUATION = re.compile(
  r'(?!(?<![\w)])-\$?\.?\d)(?!(?<!\w)\.\d)(?!(?<=\d)[.,:/-]\d)[!-/:-@\[-`{-~]',
  re.ASCII,
)
_THOUSANDS = re.compile(r'(?<=\d),(?=\d{3}(?!\d))', re.ASCII)
_ARTICLES = re.compile(r'\b(?:a|an|the)\b')

MODES = (
  'whole',
  'hash',
  'boxed',
  'answer_tags',
  'last_number',
  'first_line_last_number',
  'answer_line',
  'answer_is',
  'boxed_or_last_number',
  'boxed_after_think',
  'hash_number',
)
# Modes that search for a mark; it can be asked for near the end.
MARKED = (
  *('hash', 'boxed', 'answer_tags', 'answer_line', 'boxed_after_think'),
  *('hash_number', 'answer_is'),
)
_IS = re.compile(r'\banswer\s++is:?\s++([^\n]++)', re.IGNORECASE)
_LINE = re.compile(r'\banswer\s*+:\s*+([^\n]++)', re.IGNORECASE)
# The line has no other digit and does not continue the number: '12e3', '2^x'.
_HASHED = re.compile(
  r'####[ ](-?[\d.,]++)(?![\w(/*+=])(?!\^(?!\{?\\circ))(?!.*\d)'
  r'(?![ ]?\\(?!%|\$|text\b))(?![ ][-+*/^=\u00d7])',
  re.ASCII,
)
_GROUPED = re.compile(r'-?\d{1,3}(?:,\d{3})++(?:\.\d*+)?')


def extract(text: str, mode: str, last: int | None = None) -> str | None:
  r"""The answer as text, or None if the response does not have that form.

  whole: everything, stripped. hash: what follows the last '####' on its line.
  boxed: the content of the last \boxed{...} with balanced braces. answer_tags:
  between the last <answer> and the next </answer>. last_number: the last
  number: with its sign ('- 3'), exponent ('1e3'), denominator ('3/4') and whole
  part ('3 1/2'), in plain digits ('12000' for '12\,000'); None if it ends an
  expression ('2^10', '3*4', '\sqrt{2}') or cannot be distinguished from a part
  of a number ('1,2345', '3,5', '12, 000'). A sign after a number or a bracket
  subtracts: '20-5' gives 5. first_line_last_number: that of the first line.
  answer_line: what follows the last 'Answer:', in any case, on its line,
  without a full stop, dollar signs or a box around all of it.
  answer_is: what follows the last 'answer is', in the same way.
  boxed_or_last_number: as boxed if a box is opened, else as last_number.
  boxed_after_think: as boxed, after the last </think>, which must be there.
  hash_number: the digits after the last '#### ', without commas that separate
  thousands; None if they are a part of a number ('#### 1/2', '#### 1,2').

  last: of MARKED modes; the mark must begin in so many last characters.
  """
  if mode == 'boxed_after_think':
    text = _after_think(text)
  if last is not None:
    text = text[-last:]
  found = _EXTRACTORS[mode](text)
  if found is None:
    return None
  return found.strip() or None


def well_formed(text: str, mode: str, last: int | None = None) -> bool:
  r"""True if the response has exactly the form that the mode asks for.

  answer_tags: the whole text is <think>...</think> <answer>...</answer>, each
  tag once. hash, hash_number, boxed, answer_line, answer_is: the mark once,
  with something in it. boxed_after_think: </think> once, and the box once after
  it. Else: an answer is found.
  """
  lines = {'answer_line': _LINE, 'answer_is': _IS}.get(mode)
  if lines is not None and len(lines.findall(text)) != 1:
    return False
  if mode == 'boxed_after_think':
    if text.count('</think>') != 1 or _after_think(text).count(_BOX) != 1:
      return False
  if mode == 'answer_tags':
    return _is_think_then_answer(text.strip())
  marker = {'hash': '####', 'hash_number': '####', 'boxed': _BOX}.get(mode)
  if marker is not None and text.count(marker) != 1:
    return False
  return extract(text, mode, last) is not None


def parse_number(text: str) -> Fraction | None:
  r"""The exact value of a plain number, or None.

  Understands '$5', '-3.50', '42.', '50%' (50), surrounding spaces, and what
  `numerals.parse` reads: '1,000', '9{,}500', '3/4', '3 1/2', '1e3', ...; but
  '10^3' is to be computed.
  """
  found = _parsed(text)
  return None if found is None else found.value


def is_quotient(text: str) -> bool:
  """Returns whether a number is written as 20/4 or 3 1/2."""
  found = _parsed(text)
  return found is not None and found.form in numerals.FRACTIONS


def _parsed(text):
  """The numeral, or None."""
  text = text.strip().replace('\\$', '$').replace('\\%', '%')
  if not text or len(text) > _MAX_NUMBER_CHARACTERS:
    return None
  sign = '-' if re.match(r'[-\u2212]\s?\$', text) else ''
  text = text[1:].strip() if sign else text
  text = sign + text.removeprefix('$').removesuffix('%').strip()
  found = numerals.parse(text)
  return None if found and found.form == numerals.UNSCALED else found


def numbers_equal(answer: str, gold: str, tolerance: float) -> bool:
  """True if both are plain numbers that are equal, as `numerals.equal` says.

  An integer must be met exactly: 3.0000001 is not 3, and neither 0 nor 6/10^8
  is 1/10^8.
  """
  left, right = _parsed(answer), _parsed(gold)
  if left is None or right is None:
    return False
  return numerals.equal(left, right, tolerance)


def normal_form(answer: str, verifier: str) -> str:
  """A text that answers share which the verifier takes for the same.

  Numbers of equal value, texts that are equal without surrounding spaces,
  formulas as in `math_answers.normal_form`.
  """
  if verifier == 'math':
    return math_answers.normal_form(answer)
  if verifier == 'squad':
    return squad_form(answer)
  computed = verifier == 'decimal' and not is_quotient(answer)
  numeric = verifier == 'number' or computed
  value = parse_number(answer) if numeric else None
  return answer.strip() if value is None else str(value)


def squad_form(text: str) -> str:
  """A text without case, punctuation and articles, as SQuAD compares them.

  Punctuation within numbers and their signs stay, unlike in the released
  script: 3.5 is not 35, and -5 is not 5. A text of which nothing would be left
  keeps what it has. Source: Rajpurkar et al. 2016, arXiv:1606.05250.
  """
  text = ' '.join(text.lower().split())
  plain = _PUNCTUATION.sub('', _THOUSANDS.sub('', text))
  return ' '.join(_ARTICLES.sub(' ', plain).split()) or text


def cluster_id(form: str | None) -> float:
  """A number for a normal form, -1 for none; below 2^24: exact in float32."""
  if form is None:
    return -1.0
  return float(draws.stable_hash('answer', form) % (1 << 24))


def math_equal(
  answer: str, gold: str, extracted: bool = True, tolerance: float = 1e-6
) -> bool:
  """Returns whether the answer is a written-out form of gold (see
  `math_answers`).

  `answer` is one formula if `extracted`, else a text with `last_formula`.

  Raises: ValueError if gold has no mathematics.
  """
  if not gold.strip():
    raise ValueError(f'math-verify cannot parse the right answer {gold!r}')
  if not extracted:
    answer = last_formula(answer)
  return math_answers.equal(answer, gold, tolerance)


def last_formula(text: str) -> str:
  """The last boxed formula, else the last one in dollar signs, else all."""
  formulas = _DOLLARS.findall(text)
  return extract(text, 'boxed') or (formulas[-1] if formulas else text)


def _after_hash(text):
  _, marker, rest = text.rpartition('####')
  return rest.split('\n', 1)[0] if marker else None


def _hash_number(text):
  """The last marked number; None if the last one is unclear."""
  start = text.rfind('####')
  match = _HASHED.match(text, start) if start >= 0 else None
  if match is None:
    return None
  number = match[1].rstrip(',')
  if ',' in number and not _GROUPED.fullmatch(number):
    return None
  return number.replace(',', '')


def _answer_line(text, mark=_LINE):
  matches = collections.deque(mark.finditer(text), maxlen=1)
  if not matches:
    return None
  found = matches[0][1].strip().removesuffix('.').strip()
  if len(found) > 1 and found[0] == found[-1] == '$' and found.count('$') == 2:
    found = found[1:-1].strip()
  if found.startswith(_BOX) and (inside := _boxed(found)) is not None:
    return inside if found == f'{_BOX}{inside}}}' else found
  return found


def _answer_is(text):
  return _answer_line(text, _IS)


def _after_think(text):
  return text.rpartition('</think>')[2] if '</think>' in text else ''


def _boxed_or_last_number(text):
  # A box that is not closed may hold a torn number.
  return _boxed(text) if _BOX in text else _last_number(text)


def _boxed(text):
  start = text.rfind(_BOX)
  if start < 0:
    return None
  begin = start + len(_BOX)
  depth = 1
  for i in range(begin, len(text)):
    depth += (text[i] == '{') - (text[i] == '}')
    if depth == 0:
      return text[begin:i]
  return None


def between_tags(text: str) -> str | None:
  """The text between the last <answer> and the next </answer>, or None."""
  begin = text.rfind('<answer>')
  if begin < 0:
    return None
  inside, tag, _ = text[begin + len('<answer>') :].partition('</answer>')
  return inside if tag else None


def _last_number(text):
  text = numerals.spelled(text)
  matches = collections.deque(_NUMBER.finditer(text), maxlen=1)
  if not matches or _GOES_ON.match(text, matches[0].end()):
    return None
  match = matches[0]
  number = match['run']
  inside = _INSIDE.search(text[max(0, match.start() - 20) : match.start()])
  if inside and inside[1]:
    inside = re.match(r'0\d\d(?!\d)', number)
  elif inside and inside[2]:
    inside = match['last']
  if inside:
    return None
  found = _tidy(match['sign'] + number + match['rest'])
  if parse_number(found) is None:
    found = _after_space(match)
  return found if found and parse_number(found) is not None else None


def _tidy(text):
  """Leaves single spaces, none beside / and -, and plain digits."""
  text = re.sub(r'\s+', ' ', text)
  text = re.sub(r'(?<=-) | ?/ ?', lambda match: match[0].strip(), text)
  return numerals.joined(text, commas=False).strip()


def _after_space(match):
  """The last of several numbers; None if it may be the end of one number."""
  *others, number = re.split(r'(?<!\\) ', match['run'])
  if not others or match['last'] or re.match(r'0\d', number):
    return None
  ends = re.fullmatch(r'\d{1,3}', others[-1]) and re.match(
    r'\d{3}(?!\d)', number
  )
  return None if ends else _tidy(number + match['rest'])


def _first_line_last_number(text):
  return _last_number(text.lstrip().split('\n', 1)[0])


def _is_think_then_answer(text):
  tags = ('<think>', '</think>', '<answer>', '</answer>')
  if any(text.count(tag) != 1 for tag in tags):
    return False
  places = [text.index(tag) for tag in tags]
  between = text[places[1] + len('</think>') : places[2]]
  return (
    places == sorted(places)
    and places[0] == 0
    and not between.strip()
    and text.endswith('</answer>')
  )


_EXTRACTORS = {
  'whole': lambda text: text,
  'hash': _after_hash,
  'boxed': _boxed,
  'answer_tags': between_tags,
  'last_number': _last_number,
  'first_line_last_number': _first_line_last_number,
  'answer_line': _answer_line,
  'answer_is': _answer_is,
  'boxed_or_last_number': _boxed_or_last_number,
  'boxed_after_think': _boxed,
  'hash_number': _hash_number,
}
