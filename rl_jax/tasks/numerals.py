r"""Numbers as they are written: their exact values, forms and comparison."""

from decimal import Decimal
from fractions import Fraction
import re
from typing import NamedTuple

DECIMAL, REPEATING, SCIENTIFIC = 'decimal', 'repeating', 'scientific'
UNSCALED = 'unscaled'  # a power of ten whose factor is not from 1 to 10
QUOTIENT, MIXED = 'quotient', 'mixed'
# Forms in which an integer still waits to be computed.
OPEN_FORMS = frozenset({UNSCALED, QUOTIENT, MIXED})
# Forms that nobody writes for a rounded number.
EXACT_FORMS = frozenset({REPEATING, QUOTIENT, MIXED})

_THOUSANDS = re.compile(r'[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?', re.ASCII)
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
  r'10\s*\^\s*(?:\{\s*([+-]?[0-3]?\d{1,2})\s*\}|(\d))|'
  r'([+-]?\d{1,30}(?:\.\d{1,30})?)[eE]([+-]?[0-3]?\d{1,2})',
  re.ASCII,
)


class Numeral(NamedTuple):
  """An exact value, and which of the forms above it is written in."""

  value: Fraction
  form: str


def parse(text: str) -> Numeral | None:
  r"""The number that all of the text is, or None; nothing is computed.

  Integers and decimals, 1,000 with its separators, 0.1\overline{6}, quotients
  (\frac{3}{4}, 3/4), mixed numbers, and powers of ten (2.5 \times 10^{-3},
  10^{-3}, 2.5e-3).
  """
  text = text.strip()
  if _THOUSANDS.fullmatch(text):
    text = text.replace(',', '')
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
  top = int(match[3] or match[4] or match[7])
  bottom = int(match[5] or match[6] or match[8])
  if bottom == 0 or (whole and not 0 <= top < bottom):
    return None
  value = whole + Fraction(top, bottom)
  form = MIXED if whole else QUOTIENT
  return Numeral(-value if sign == '-' else value, form)


def equal(found: Numeral, right: Numeral, tolerance: float) -> bool:
  """True if both have the same value, as exactly as their forms state it.

    |found - right| <= tolerance * min(1, 10^d), d the digits of |right| before
    its point, below 0 for zeros behind it

  So 1e-6 asks for six significant digits below 1, however small the right
  number is, and for six digits behind the point above 1. An integer, 0 too,
  must be met exactly, and so must a quotient by another one.
  """
  value, (gold, form) = found.value, right
  exact = gold.denominator == 1 or {found.form, form} <= EXACT_FORMS
  if exact or value == gold:
    return value == gold
  leading = (Decimal(gold.numerator) / Decimal(gold.denominator)).adjusted()
  scale = Fraction(10) ** min(0, leading + 1)
  return abs(value - gold) <= Fraction(tolerance) * scale
