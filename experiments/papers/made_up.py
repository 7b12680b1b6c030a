"""Responses to problems, made of their right answers and of wrong ones.

They are right, wrong, torn, unfinished, marked twice, or write a right answer
in another form: with a unit, in percent, as another fraction. No model wrote
them; `experiments.papers.agreement` compares graders on them.
"""

from collections.abc import Iterator
from fractions import Fraction
import re

_REASONING = 'We go step by step. First, 2 + 3 = 5, which helps us here.\n'
_FRACTION = re.compile(r'(-?)\\frac\{(\d{1,9})\}\{(\d{1,9})\}')
_INTEGER = re.compile(r'-?\d{1,15}', re.ASCII)
# How an answer is marked; {} is the answer.
MARKS = {
  'boxed': 'So the answer is $\\boxed{{{}}}$.',
  'think': 'So the answer is $\\boxed{{{}}}$.',
  'hash': '#### {}',
  'line': 'Answer: {}',
  'dollars': 'So the answer is ${}$.',
}
_THOUGHTS = '<think>\nHm.\n</think>\n'
# Of modes of answers.extract.
STYLES = {
  'boxed': 'boxed',
  'boxed_or_last_number': 'boxed',
  'boxed_after_think': 'think',
  'hash': 'hash',
  'hash_number': 'hash',
  'answer_line': 'line',
}


def marked(answer: str, style: str) -> str:
  """The shortest response with an answer in a style."""
  return _THOUGHTS * (style == 'think') + MARKS[style].format(answer)


def responses(right: str, wrong: str, style: str) -> Iterator[tuple[str, str]]:
  """(form, response) for a problem.

  right, wrong: an answer that is right, and one that is not. style: of MARKS.
  """
  before = _THOUGHTS * (style == 'think') + _REASONING

  def mark(answer):
    return MARKS[style].format(answer)

  yield 'right', before + mark(right)
  yield 'wrong', before + mark(wrong)
  for form, answer in (*_same(right), *_other(right, wrong)):
    yield form, before + mark(answer)
  yield 'right, then wrong', f'{before}{mark(right)}\nWait.\n{mark(wrong)}'
  yield 'wrong, then right', f'{before}{mark(wrong)}\nWait.\n{mark(right)}'
  yield 'twice', f'{before}{mark(right)}\n{mark(right)}'
  yield 'text after', f'{before}{mark(right)}\nI hope that this helps.'
  yield 'long text after', before + mark(right) + '\nOne more word.' * 30
  start = mark(right).rindex(right) if right else len(mark(right))
  yield 'torn in the answer', before + mark(right)[: start + len(right) - 1]
  yield 'torn after the answer', before + mark(right)[: start + len(right)]
  yield 'torn before the answer', before + mark(right)[:start]
  yield 'unfinished', before + 'So the answer is'
  yield 'without a mark', f'{before}So the answer is {right}.'
  yield 'nothing', ''
  if style == 'think':
    yield 'only thoughts', f'<think>\n{_REASONING}{mark(right)}'
    yield 'no thoughts', _REASONING + mark(right)
    yield 'answer in thoughts', f'<think>{mark(right)}</think>\nThat is all.'


def _same(right) -> Iterator[tuple[str, str]]:
  """Other forms of the right answer."""
  yield 'spaces around', f' {right} '
  yield 'full stop inside', f'{right}.'
  yield 'dollar signs inside', f'${right}$'
  yield 'named', f'x = {right}'
  yield 'text', f'\\text{{{right}}}'
  yield 'unit', f'{right} \\text{{ cm}}'
  yield 'unit in plain letters', f'{right} cm'
  yield 'degrees', f'{right}^\\circ'
  yield 'percent', f'{right}\\%'
  yield 'currency', f'\\${right}'
  if _INTEGER.fullmatch(right):
    yield from _same_integer(int(right))
  if match := _FRACTION.fullmatch(right):
    yield from _same_fraction(match)


def _same_integer(value):
  yield 'point and zero', f'{value}.0'
  yield 'quotient of integers', f'\\frac{{{2 * value}}}{{2}}'
  yield 'sum', f'{value - 1}+1'
  yield 'product', f'{value} \\cdot 1'
  yield 'leading zero', f'0{value}' if value >= 0 else f'-0{-value}'
  yield 'plus sign', f'+{value}'
  if abs(value) >= 1000:
    commas = f'{value:,}'
    yield 'thousands by commas', commas
    yield 'thousands by {,}', commas.replace(',', '{,}')
    yield 'thousands by thin spaces', commas.replace(',', '\\,')


def _same_fraction(match):
  sign, top, bottom = match[1], int(match[2]), int(match[3])
  yield 'dfrac', match[0].replace('frac', 'dfrac')
  yield 'slash', f'{sign}{top}/{bottom}'
  yield 'not reduced', f'{sign}\\frac{{{2 * top}}}{{{2 * bottom}}}'
  value = Fraction(top, bottom)
  if 10**6 % value.denominator == 0:
    yield 'decimal', f'{sign}{float(value):g}'
  if value > 1 and value.denominator > 1:
    rest = value - value // 1
    whole = f'{value // 1}\\frac{{{rest.numerator}}}{{{rest.denominator}}}'
    yield 'mixed number', sign + whole


def _other(right, wrong) -> Iterator[tuple[str, str]]:
  """Answers that are not the right one."""
  yield 'negated', right[1:] if right.startswith('-') else f'-{right}'
  yield 'two answers', f'{right}, {wrong}'
  yield 'either answer', f'{right} \\text{{ or }} {wrong}'
  yield 'empty', ''
  if _INTEGER.fullmatch(right):
    value = int(right)
    yield 'one more', str(value + 1)
    yield 'a thousandth more', f'{value}.001'
    yield 'ten times', f'{value}0'
    yield 'a power', f'{value}^2'
  if match := _FRACTION.fullmatch(right):
    yield 'upside down', f'{match[1]}\\frac{{{match[3]}}}{{{match[2]}}}'
