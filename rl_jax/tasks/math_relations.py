"""Inequalities: their two directions, and the intervals that they are.

Formulas are spelled as `math_spelling.clean` does.
"""

import re

from rl_jax.tasks import math_spelling

SIGN = re.compile(r'=|<|>|\\(?:le|ge|ne|approx|equiv)(?![a-z])')
SYMBOL = re.compile(r'\s*(?:[A-Za-z]|\\[a-z]+)(?:_\{?\w\}?)?(?:\([a-z]\))?\s*')
# What is compared with numbers: no e, pi or infinity.
_VARIABLE = re.compile(
  r'(?!e$)[A-Za-z](?:_\{?\w\}?)?|\\(?!pi|infty)[a-z]+(?:_\{?\w\}?)?'
)
_ORDER = re.compile(r'<|>|\\(?:le|ge)(?![a-z])')
_REVERSED = {'>': '<', '\\ge': '\\le'}


def has_order(text: str) -> bool:
  """Returns whether something in it is less than something else."""
  return _ORDER.search(text) is not None


def ordered(text: str) -> tuple[list[str], list[str]] | None:
  r"""(sides, signs) of an inequality, with the lesser side first.

  5 < k and k > 5 both are (['5', 'k'], ['<']). None for other signs than
  <, >, \le and \ge, and for chains that turn, as a < b > c.
  """
  signs = SIGN.findall(text)
  sides = [side.strip() for side in SIGN.split(text)]
  if signs and set(signs) <= _REVERSED.keys():
    signs = [_REVERSED[sign] for sign in reversed(signs)]
    sides.reverse()
  if not signs or not set(signs) <= set(_REVERSED.values()) or '' in sides:
    return None
  return sides, signs


def as_intervals(text: str) -> str | None:
  r"""The numbers that solve one inequality, or any of a list of them.

  [1,3) for 1 \le x < 3, (-\infty,1)\cup(3,\infty) for x < 1, x > 3. None where
  no side, or more than one, is a symbol.
  """
  found = [_interval(piece) for piece in math_spelling.split(text, ',')]
  known = [interval for interval in found if interval is not None]
  return r'\cup '.join(known) if len(known) == len(found) else None


def _interval(text):
  found = ordered(text)
  if found is None:
    return None
  sides, signs = found
  places = [i for i, side in enumerate(sides) if _VARIABLE.fullmatch(side)]
  if len(sides) == 3 and places == [1]:
    (low, _, high), (first, last) = sides, signs
  elif len(sides) == 2 and places == [1]:
    low, high, first, last = sides[0], r'\infty', signs[0], '<'
  elif len(sides) == 2 and places == [0]:
    low, high, first, last = r'-\infty', sides[1], '<', signs[0]
  else:
    return None
  begin, end = '(' if first == '<' else '[', ')' if last == '<' else ']'
  return f'{begin}{low},{high}{end}'
