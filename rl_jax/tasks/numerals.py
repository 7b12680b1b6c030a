r"""Numbers as they are written: their exact values, forms and comparison."""

from decimal import Decimal
from fractions import Fraction
import re
from typing import NamedTuple
import unicodedata

DECIMAL, REPEATING, SCIENTIFIC = 'decimal', 'repeating', 'scientific'
UNSCALED = 'unscaled'  # a power of ten whose factor is not from 1 to 10
QUOTIENT, MIXED = 'quotient', 'mixed'
FRACTIONS = frozenset({QUOTIENT, MIXED})
# Forms in which an integer still waits to be computed.
OPEN_FORMS = FRACTIONS | {UNSCALED}
# Forms that are never written for a rounded number.
EXACT_FORMS = FRACTIONS | {REPEATING}

# Spaces of a given width, and marks that never separate two numbers of a list.
THIN = (
  r'\\[,;:!]|\\ |\\thinspace(?![a-z])\s*+|\{\\[,;:]\}|~|'
  '[\u00a0\u2007\u2009\u202f]'
)
MARKS = (
  r'\{,\}|,\\!\s*+|\\!,|\\(?:text|mathord)\{,\}|'
  "['\u2019\uff0c\u066c]|\\\\?_"
)
# Digits with what may be between them: one number, if it can be read.
CHAIN = rf'\d++(?:(?:{THIN}|{MARKS}|[.,])\d++)*+'
_CHAIN = re.compile(CHAIN, re.ASCII)
_CHAIN_OF_FORMULA = re.compile(CHAIN.replace('|[.,]', r'|\.'), re.ASCII)
_SPACED = re.compile(
  r'(?<![\d.])(?<!\d[ ,])(?!0)\d{1,3}(?: \d{3})++(?:\.\d++)?'
  r'(?![ ]?[\d/]|[.,]\d)',
  re.ASCII,
)
_GROUPED = re.compile(
  rf'(?!0)\d{{1,3}}({THIN}|{MARKS}|,)\d{{3}}(?:\1\d{{3}})*(?:\.\d+)?', re.ASCII
)
_DOTTED = re.compile(r'(?!0)\d{1,3}(?:\.\d{3}){2,}', re.ASCII)
_FINE = re.compile(  # groups after the point, too
  rf'(?:(?!0)\d{{1,3}}(?:(?:{THIN})\d{{3}})+|\d+)'
  rf'\.\d{{3}}(?:(?:{THIN})\d{{3}})*(?:{THIN})\d{{1,3}}',
  re.ASCII,
)
_SIGNS = {
  '\u2212': '-',
  '\u00d7': r'\times ',
  '\u2044': '/',
  **{  # the fractions that are one character: 3 1/2
    sign: ' ' + unicodedata.normalize('NFKC', sign).replace('\u2044', '/')
    for sign in map(chr, (0xBC, 0xBD, 0xBE, *range(0x2150, 0x215F)))
  },
}
_SPELLED = str.maketrans(_SIGNS)
_FRAC = re.compile(r'\\[dtc]frac(?![a-z])')

_DECIMAL = re.compile(r'([+-]?)\s*(\d{1,60}\.?\d{0,60}|\.\d{1,60})', re.ASCII)
_REPEATING = re.compile(
  r'([+-]?)(\d{1,30})\.(\d{0,30})\\overline\{(\d{1,30})\}', re.ASCII
)
_QUOTIENT = re.compile(
  r'([+-]?)\s*(?:(\d{1,30})\s*(?=\\|\s))?\s*(?:'
  r'\\frac\s*(?:\{\s*([+-]?\d{1,30})\s*\}|(\d))\s*'
  r'(?:\{\s*([+-]?\d{1,30})\s*\}|(\d))|(\d{1,30})\s*/\s*(\d{1,30}))',
  re.ASCII,
)
_SCIENTIFIC = re.compile(
  r'([+-]?)\s*(?:(\d{1,30}(?:\.\d{1,30})?)\s*(?:\\times|\\cdot)\s*)?'
  r'10\s*\^\s*(?:\{\s*([+-]?[0-3]?\d{1,2})\s*\}|(\d|-[0-3]?\d{1,2}))|'
  r'([+-]?\d{1,30}(?:\.\d{1,30})?)[eE]([+-]?[0-3]?\d{1,2})',
  re.ASCII,
)


class Numeral(NamedTuple):
  """An exact value, and which of the forms above it is written in."""

  value: Fraction
  form: str


def spelled(text: str) -> str:
  r"""The text with -, \times and 1/2 for the signs of Unicode."""
  return text.translate(_SPELLED)


def joined(text: str, commas: bool = True) -> str:
  r"""The text with all numbers in plain digits: 12000.5 for 12\,000.5.

  Separators of thousands are a comma, {,}, thin spaces, a space, an apostrophe,
  an underscore, and a point if there are two. What is torn, as 1{,}2 or 0,500,
  stays. commas: whether a bare comma is one, as it is not in (1,234).
  """
  chains = _CHAIN if commas else _CHAIN_OF_FORMULA
  text = chains.sub(lambda match: plain_digits(match[0]) or match[0], text)
  return _SPACED.sub(lambda match: match[0].replace(' ', ''), text)


def plain_digits(chain: str) -> str | None:
  """1234.5 for 1,234.5; None for what is not a single number."""
  if _DOTTED.fullmatch(chain):
    return chain.replace('.', '')
  if _GROUPED.fullmatch(chain) or _FINE.fullmatch(chain):
    return re.sub(r'[^\d.]', '', chain)
  whole, point, rest = chain.partition('.')
  is_plain = whole.isdecimal() and (rest.isdecimal() or not point)
  return chain if is_plain else None


def parse(text: str) -> Numeral | None:
  r"""The number that all of the text is, or None; nothing is computed.

  Integers and decimals, 1,000 with its separators (`joined`), 0.1\overline{6},
  quotients (\frac{3}{4}, 3/4), mixed numbers (3 1/2), and powers of ten
  (2.5 \times 10^{-3}, 10^{-3}, 2.5e-3).
  """
  text = joined(_FRAC.sub(r'\\frac', spelled(text))).strip()
  text = re.sub(THIN, ' ', text)
  if match := _DECIMAL.fullmatch(text):
    return Numeral(Fraction(match[1] + match[2].removesuffix('.')), DECIMAL)
  if match := _REPEATING.fullmatch(text):
    sign, whole, head, tail = match.groups()
    nines = (10 ** len(tail) - 1) * 10 ** len(head)
    value = Fraction(f'{whole}.{head or 0}') + Fraction(int(tail), nines)
    return Numeral(-value if sign == '-' else value, REPEATING)
  if match := _SCIENTIFIC.fullmatch(text):
    return _scientific(match)
  if match := _QUOTIENT.fullmatch(text):
    return _quotient(match)
  return None


def _scientific(match):
  if match[5]:
    return Numeral(Fraction(f'{match[5]}e{match[6]}'), SCIENTIFIC)
  factor = Fraction(match[2] or 1)
  value = factor * Fraction(10) ** int(match[3] or match[4])
  scaled = match[2] is not None and 1 <= factor < 10
  form = SCIENTIFIC if scaled else UNSCALED
  return Numeral(-value if match[1] == '-' else value, form)


def _quotient(match):
  sign, whole = match[1], int(match[2] or 0)
  above = match[3] or match[4] or match[7]
  top, bottom = int(above), int(match[5] or match[6] or match[8])
  torn = above.startswith('0')  # 10 000/3
  if bottom == 0 or (whole and (torn or not 0 <= top < bottom)):
    return None
  value = whole + Fraction(top, bottom)
  form = MIXED if whole else QUOTIENT
  return Numeral(-value if sign == '-' else value, form)


def equal(given: Numeral, right: Numeral, tolerance: float) -> bool:
  """True if both have the same value, as exactly as their forms state it.

    |found - right| <= tolerance * min(1, 10^d), d the digits of |right| before
    its point, below 0 for zeros after it

  So 1e-6 asks for six significant digits below 1, however small the right
  number is, and for six digits after the point above 1. An integer, 0 too,
  must be met exactly, and so must a quotient by another one.
  """
  value, (gold, form) = given.value, right
  exact = gold.denominator == 1 or {given.form, form} <= EXACT_FORMS
  if exact or value == gold:
    return value == gold
  leading = (Decimal(gold.numerator) / Decimal(gold.denominator)).adjusted()
  scale = Fraction(10) ** min(0, leading + 1)
  return abs(value - gold) <= Fraction(tolerance) * scale
