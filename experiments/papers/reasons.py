"""Why our graders and released ones differ on made-up responses.

A rule names released graders, forms of `made_up.responses`, who accepts them,
and the reason; the first that fits counts. What no rule names has no
reason, and is to be mended.
"""

from typing import NamedTuple

UNEXPLAINED = 'no reason known'
_BOXES = frozenset(
  {
    *('oat', 'oat_fast', 'entropy_mechanism', 'disco', 'empo', 'simplerl'),
    *('verl_math', 'verl_math_verify', 'lm_eval_math'),
  }
)
_HASHES = frozenset({'verl_gsm8k', 'spo', 'lm_eval_gsm8k'})
_ALL = frozenset()


class Rule(NamedTuple):
  """graders: names, none: all. only: who accepts, 'ours' or 'released'."""

  graders: frozenset[str]
  forms: tuple[str, ...]
  only: str
  reason: str


RULES = (
  Rule(
    _ALL,
    ('sum', 'product', 'quotient of integers', 'a power'),
    'released',
    'stricter on purpose: what is still to be computed is not an answer',
  ),
  Rule(
    _ALL,
    ('either answer', 'two answers'),
    'released',
    'stricter on purpose: two answers are not one',
  ),
  Rule(
    frozenset({'lm_eval_gsm8k'}),
    ('right, then wrong', 'wrong, then right'),
    'released',
    'lm-eval takes the first mark, verl and we the last',
  ),
  Rule(
    frozenset({'lm_eval_gsm8k'}),
    ('right, then wrong', 'wrong, then right'),
    'ours',
    'lm-eval takes the first mark, verl and we the last',
  ),
  Rule(
    frozenset({'lm_eval_math'}),
    ('wrong, then right', 'twice', 'right, then wrong', 'text after'),
    'ours',
    'lm-eval takes all between the first and the last dollar sign',
  ),
  Rule(
    frozenset({'simplerl', 'verl_math_verify'}),
    ('torn after the answer', 'torn in the answer'),
    'released',
    'stricter on purpose: an open box may hold a torn answer',
  ),
  Rule(
    frozenset({'simplerl', 'verl_math_verify'}),
    (
      *('without a mark', 'right, then wrong', 'unfinished', 'empty'),
      'torn before the answer',
    ),
    'released',
    'the released grader also reads formulas outside of boxes',
  ),
  Rule(
    frozenset({'simplerl'}),
    ('unfinished', 'without a mark'),
    'ours',
    'the released grader reads what follows "answer is" before a last number',
  ),
  Rule(
    _BOXES,
    ('negated',),
    'released',
    'the released grader drops a sign before a dollar sign',
  ),
  Rule(
    _BOXES,
    ('percent', 'text', 'named', 'unit', 'degrees', 'currency'),
    'released',
    'the released grader drops these also around what is not a number',
  ),
  Rule(
    _ALL,
    ('full stop inside', 'dollar signs inside', 'text', 'spaces around'),
    'ours',
    'marks of the text around an answer do not change it',
  ),
  Rule(
    _ALL,
    (
      *('point and zero', 'leading zero', 'plus sign', 'thousands by {,}'),
      *('thousands by thin spaces', 'thousands by commas', 'decimal'),
      *('not reduced', 'mixed number', 'slash', 'dfrac'),
    ),
    'ours',
    'the value is equal; the released grader compares texts',
  ),
  Rule(
    _ALL,
    ('percent', 'degrees', 'unit', 'unit in plain letters', 'currency'),
    'ours',
    'a unit does not change the number',
  ),
  Rule(
    _HASHES | {'lm_eval_gsm8k_flexible'},
    ('full stop inside',),
    'released',
    'the released grader drops a full stop from both texts',
  ),
  Rule(
    frozenset({'spo'}),
    ('text after', 'long text after'),
    'ours',
    'the released grader compares all text after the mark, we its line',
  ),
  Rule(
    frozenset({'empo'}),
    ('a thousandth more', 'one more'),
    'released',
    'the released grader rounds, also where the right answer is an integer',
  ),
)


def why(grader: str, form: str, only: str) -> str:
  """The reason for a difference, or UNEXPLAINED."""
  for rule in RULES:
    fits = not rule.graders or grader in rule.graders
    if fits and form in rule.forms and only == rule.only:
      return rule.reason
  return UNEXPLAINED
