"""Extraction and comparison of answers."""

from fractions import Fraction
import sys

import pytest

from rl_jax.tasks import answers, math_forms


@pytest.mark.parametrize(
  ('mode', 'text', 'found'),
  [
    ('whole', ' a b \n', 'a b'),
    ('whole', ' ', None),
    ('hash', 'so\n#### 1,234\nbye', '1,234'),
    ('hash', '#### 1 #### 2', '2'),
    ('hash', 'none', None),
    ('boxed', r'\boxed{1} then \boxed{\frac{1}{2}}.', r'\frac{1}{2}'),
    ('boxed', r'\boxed{1', None),
    ('boxed', 'boxed{1}', None),
    ('answer_tags', '<answer>1</answer> <answer> 2 </answer>', '2'),
    ('answer_tags', '<answer>1</answer> <answer>2', None),
    ('last_number', 'it is 3 + 5 = 8.', '8'),
    ('last_number', 'from 1,200.50 on', '1,200.50'),
    ('last_number', 'it is -7', '-7'),
    ('last_number', '20-5', '5'),  # a minus operator is not a sign
    ('last_number', '(2)-5', '5'),
    ('last_number', '$-5', '-5'),
    ('last_number', '1,2345', None),  # torn: neither 12345 nor two numbers
    ('last_number', 'no number', None),
    ('last_number', 'it is - 3', '-3'),
    ('last_number', 'it is \u22123.', '-3'),
    ('last_number', '= -3', '-3'),
    ('last_number', 'a loss: -$1,000.50', '-$1,000.50'),
    ('last_number', '20-$5', '5'),
    ('last_number', '20 - 5', '5'),
    ('last_number', 'about 3/4', '3/4'),
    ('last_number', 'about -3 / 4 of it', '-3/4'),
    ('last_number', 'is 1e3', '1e3'),
    ('last_number', 'is 2.5E-3.', '2.5E-3'),
    ('last_number', 'is 2^10', None),
    ('last_number', 'is 2**10', None),
    ('last_number', 'is 2^{10}', None),
    ('last_number', 'is 3 * 4', None),
    ('last_number', 'is 3/4/5', None),
    ('last_number', 'is 3/0', None),
    ('last_number', '2 * 5 = 10', '10'),
    ('last_number', '8 / 2 = 4', '4'),
    ('last_number', 'is 10', '10'),
    ('last_number', 'in 3 eggs', '3'),
    ('last_number', '3e', '3'),
    ('last_number', 'is .5', '.5'),
    ('last_number', 'is -.5.', '-.5'),
    ('last_number', '1.2.3', None),
    ('last_number', 'is 5²', None),
    ('last_number', 'is 5!', '5'),  # a sentence may end so
    # Separators of thousands, and mixed numbers.
    ('last_number', 'so $9{,}500$.', '9500'),
    ('last_number', 'so $9{,}000$.', '9000'),
    ('last_number', r'is $12\,000$', '12000'),
    ('last_number', r'is $12\!,000$', '12000'),
    ('last_number', r'is $-12,\!000.5$', '-12000.5'),
    ('last_number', 'is 10 000', '10000'),
    ('last_number', 'is 10\u00a0000', '10000'),
    ('last_number', 'is 10\u2009000\u2009000 m', '10000000'),
    ('last_number', 'is 1.000.000', '1000000'),
    ('last_number', "is 12'000", '12000'),
    ('last_number', 'is 12\u2019000', '12000'),
    ('last_number', 'is 12_000', '12000'),
    ('last_number', r'is 12\text{,}000', '12000'),
    ('last_number', 'is 12\uff0c000', '12000'),
    ('last_number', '3 1/2 hours', '3 1/2'),
    ('last_number', 'a loss of -3 1/2', '-3 1/2'),
    ('last_number', '3\u00bd hours', '3 1/2'),
    ('last_number', r'$3\frac{1}{2}$ hours', r'3\frac{1}{2}'),
    ('last_number', r'is $-\dfrac{3}{4}$', r'-\dfrac{3}{4}'),
    ('last_number', r'is $2.5 \times 10^{3}$', r'2.5 \times 10^{3}'),
    ('last_number', 'is 2.5 \u00d7 10^3', r'2.5 \times 10^3'),
    ('last_number', 'is 2.5 \u00d7 10^-3 m', r'2.5 \times 10^-3'),
    # What may be a part of a number is none.
    ('last_number', 'is 1,23', None),
    ('last_number', 'is 3,5', None),
    ('last_number', 'is 0,500', None),
    ('last_number', 'is 1.234,56', None),
    ('last_number', 'is 1,00,000', None),
    ('last_number', 'is $1{,}5$', None),
    ('last_number', r'is $1\,2$', None),
    ('last_number', r'is 1\ 2', None),
    ('last_number', 'is 12, 000', None),
    ('last_number', 'is 12\n000', None),
    ('last_number', 'is 1 0000', None),
    ('last_number', 'is 12 34 567', None),
    ('last_number', 'is 3 7/2', None),
    ('last_number', 'is 3-1/2 hours', None),
    ('last_number', 'is 3 and 1/2 hours', None),
    ('last_number', 'is 10 000/3', None),
    ('last_number', r'is $3\frac{5}{2}$', None),
    ('last_number', r'is $\frac{\sqrt{3}}{2}$', None),
    ('last_number', r'is $\frac{3}{x}$', None),
    ('last_number', r'is $5\sqrt{2}$', None),
    ('last_number', r'is $2\pi$', None),
    ('last_number', 'is x^2', None),
    ('last_number', 'is x^{-2}', None),
    # Two numbers.
    ('last_number', 'from 5 10', '10'),
    ('last_number', 'from 5 and 10', '10'),
    ('last_number', 'is 3 - 1/2', '1/2'),
    ('last_number', 'in 2023 150', '150'),
    ('last_number', 'from 2.5 100', '100'),
    ('last_number', 'of 12, 500', '500'),
    ('first_line_last_number', '\n2 * 3 = 6\nthat is 7', '6'),
    ('first_line_last_number', 'six\n7', None),
    ('answer_line', 'so\nAnswer: 34', '34'),
    ('answer_line', 'so\nANSWER : $34$.', '34'),
    ('answer_line', r'Answer: \boxed{\frac{1}{2}}', r'\frac{1}{2}'),
    ('answer_line', 'Answer:\n5', '5'),
    ('answer_line', 'Answer: 3\nAnswer: 4', '4'),  # the last one counts
    ('answer_line', 'Answer: 3 or 4', '3 or 4'),
    ('answer_line', 'Answer: $3$ or $4$', '$3$ or $4$'),
    ('answer_line', r'Answer: \boxed{3} \boxed{4}', r'\boxed{3} \boxed{4}'),
    ('answer_line', 'Answer: $Answer', '$Answer'),  # of the instruction
    ('answer_line', 'Nonanswer: 5', None),
    ('answer_line', 'Answer:', None),
    ('answer_line', 'Answer 5', None),
    ('answer_is', 'so the answer is (B).', '(B)'),
    ('answer_is', 'The Answer is: $34$', '34'),
    ('answer_is', 'answer is A\nthe answer is B, as', 'B, as'),  # the last
    ('answer_is', 'answers is B', None),
    ('answer_is', 'the answer is', None),
    ('boxed_or_last_number', r'is 12 \boxed{13} or 14', '13'),
    ('boxed_or_last_number', 'is 12', '12'),
    ('boxed_or_last_number', r'12 is \boxed{1', None),  # torn
    ('boxed_or_last_number', r'\boxed{12} is \boxed{', None),
    ('boxed_or_last_number', '1,2345', None),
    ('boxed_after_think', r'so \boxed{1}</think>is \boxed{2}', '2'),
    ('boxed_after_think', r'so \boxed{1}</think>is 1', None),
    ('boxed_after_think', r'so \boxed{1}', None),
    ('boxed_after_think', r'</think>\boxed{1}</think>', None),
    ('boxed_after_think', r'</think>\boxed{1', None),
    ('hash_number', 'so #### 72', '72'),
    ('hash_number', '#### 1,234', '1234'),
    ('hash_number', '#### -5 apples', '-5'),
    ('hash_number', '#### 5\n#### 6', '6'),
    ('hash_number', '#### 18 \\text{ cm}', '18'),
    ('hash_number', '#### 18\\%', '18'),
    ('hash_number', '#### 18^\\circ', '18'),
    ('hash_number', '#### 18^2', None),
    ('hash_number', '#### 18 \\cdot 1', None),
    ('hash_number', '#### 18\\sqrt{2}', None),
    ('hash_number', '#### 18 \\text{ or } 3', None),
    ('hash_number', '#### 5\n#### six', None),
    ('hash_number', '####5', None),
    ('hash_number', '#### 12.', '12.'),  # as a text not 12
    ('hash_number', '#### 5 or 6', None),
    ('hash_number', '#### 5 dollars and 6 cents', None),
    ('hash_number', '#### 1,2', None),
    ('hash_number', '#### 12,34', None),
    ('hash_number', '#### 1/2', None),
    ('hash_number', '#### 3 1/2', None),
    ('hash_number', '#### 12e3', None),
    ('hash_number', '#### 2^x', None),
    ('hash_number', '#### 2 - x', None),
    ('hash_number', r'#### 5\pi', None),
    ('hash_number', '#### the 5', None),
  ],
)
def test_extract(mode, text, found):
  assert answers.extract(text, mode) == found


@pytest.mark.parametrize(
  ('mode', 'text', 'marked'),
  [
    ('boxed', r'\boxed{12}', 10),
    ('hash', '#### 12', 7),
    ('hash_number', '#### 12', 7),
    ('answer_line', 'Answer: 12', 10),
    ('answer_is', 'answer is 12', 12),
    ('boxed_after_think', r'</think>\boxed{12}', 10),
    ('answer_tags', '<answer>12</answer>', 19),
  ],
)
def test_a_mark_begins_in_the_last_characters(mode, text, marked):
  """One character less, or one more after it, and there is no answer."""
  assert answers.extract('7 ' + text, mode, marked) == '12'
  assert answers.extract('7 ' + text, mode, marked - 1) is None
  assert answers.extract(f'7 {text} ', mode, marked) is None
  assert answers.well_formed('x' * 9 + text, mode, marked - 1) is False


@pytest.mark.parametrize(
  ('answer', 'gold', 'same'),
  [
    ('The  Beatles!', 'beatles', True),
    ("o'neil", 'ONeil', True),
    ('U.S.', 'us', True),
    ('1,000', '1000', True),
    ('$5.', '5', True),
    ('Paris or London', 'Paris', False),
    ('Paris, London', 'Paris', False),
    ('not Paris', 'Paris', False),
    ('3.5', '35', False),
    ('-5', '5', False),
    ('(-5)', '5', False),
    ('-$5', '5', False),
    ('.5', '5', False),
    ('1/2', '12', False),
    ('19-90', '1990', False),
    ('1,00', '100', False),
    ('the', 'a', False),  # nothing would be left of both
    ('!', '?', False),
    ('', '!', False),
    ('A', 'a', True),
  ],
)
def test_squad_forms(answer, gold, same):
  found = answers.squad_form(answer) == answers.squad_form(gold)
  assert found is same


@pytest.mark.parametrize(
  ('mode', 'text', 'good'),
  [
    ('answer_tags', ' <think>a</think>\n<answer>1</answer>\n', True),
    ('answer_tags', '<answer>1</answer>', False),
    ('answer_tags', 'x <think>a</think><answer>1</answer>', False),
    ('answer_tags', '<think>a</think> b <answer>1</answer>', False),
    ('answer_tags', '<think>a</think><answer>1</answer> b', False),
    ('answer_tags', '<think></think><answer>1</answer><answer>', False),
    ('answer_tags', '<answer>1</answer><think>a</think>', False),
    ('boxed', r'is \boxed{2}', True),
    ('boxed', r'\boxed{2} \boxed{3}', False),
    ('boxed', r'\boxed{}', False),
    ('hash', 'so #### 4', True),
    ('hash', '####', False),
    ('last_number', 'x 4', True),
    ('last_number', 'x', False),
    ('answer_line', 'Answer: 3', True),
    ('answer_line', 'Answer: 3\nAnswer: 3', False),
    ('boxed_after_think', r'a</think>\boxed{2}', True),
    ('boxed_after_think', r'a</think></think>\boxed{2}', False),
    ('boxed_after_think', r'a</think>\boxed{2} \boxed{2}', False),
    ('hash_number', '#### 4', True),
    ('hash_number', '#### 4 #### 4', False),
  ],
)
def test_well_formed(mode, text, good):
  assert answers.well_formed(text, mode) is good


@pytest.mark.parametrize(
  ('text', 'value'),
  [
    ('1,000', 1000),
    (' $5 ', 5),
    ('-$5.50', Fraction(-11, 2)),
    (r'\$7', 7),
    ('42.', 42),
    ('.5', Fraction(1, 2)),
    ('50%', 50),
    ('3/4', Fraction(3, 4)),
    ('9{,}500', 9500),
    (r'12\,000', 12000),
    (r'12\!,000', 12000),
    ('10 000', 10000),
    ('1.000.000', 1000000),
    ("-\\$12'000.50", Fraction(-24001, 2)),
    ('3 1/2', Fraction(7, 2)),
    (r'-3\frac{1}{2}', Fraction(-7, 2)),
    ('1.000', 1),
    ('1{,}00', None),
    ('0,500', None),
    ('1 2', None),
    ('10 000/3', None),
    ('3 3/2', None),
    ('10^3', None),
    ('2.5e-3', Fraction(1, 400)),
    (r'2.5\times 10^{3}', 2500),
    ('-3 / 4', Fraction(-3, 4)),
    ('1e3', 1000),
    ('+2', 2),
    ('3/0', None),
    ('1,00', None),
    ('x=3', None),
    ('nan', None),
    ('inf', None),
    ('1e999', None),
    ('', None),
    ('٣', None),
    ('1' * 101, None),
  ],
)
def test_parse_number(text, value):
  assert answers.parse_number(text) == value


def test_numbers_equal_within_tolerance():
  assert answers.numbers_equal('0.3333333', '1/3', 1e-6)
  assert not answers.numbers_equal('0.333', '1/3', 1e-6)
  assert answers.numbers_equal('1,000', '1000.0', 0.0)
  assert not answers.numbers_equal('1000000001', '1000000000', 1e-6)
  assert not answers.numbers_equal('x', '1', 1e-6)
  for small in ('1/1048576', '0.0000005', '-1/1048576', '5e-9'):
    assert not answers.numbers_equal('0', small, 1e-6)
    assert answers.numbers_equal(small, small, 1e-6)


@pytest.mark.parametrize(
  ('answer', 'gold', 'equal'),
  [
    (r'\frac12', '0.5', True),
    (r'\dfrac{2}{4}', r'\frac{1}{2}', True),
    ('x+1', '1+x', True),
    ('(0,3)', '(0, 3)', True),
    ('2x', 'x', False),
    ('', 'x', False),
  ],
)
def test_math_equal(answer, gold, equal):
  assert answers.math_equal(answer, gold) is equal


def test_math_equal_searches_a_whole_text():
  text = r'First $7$, but then the answer is \boxed{\sqrt{2}}.'
  assert answers.math_equal(text, r'2^{1/2}', extracted=False)
  assert not answers.math_equal(text, '7', extracted=False)


def test_a_gold_answer_without_mathematics_is_an_error():
  with pytest.raises(ValueError, match='cannot parse the right answer'):
    answers.math_equal('1', '')


def test_missing_math_verify_says_what_to_install(monkeypatch):
  monkeypatch.setitem(sys.modules, 'math_verify', None)
  with pytest.raises(ImportError, match='pip install .*math-verify'):
    math_forms.math_verify()


def test_extraction_is_linear_in_the_text():
  """Long runs of the worst characters: a backtracking search would not end."""
  pieces = ('1', '1,', '1,234,', '<answer>', '\\boxed{', '{', '-', '####')
  digits = (
    '1 ',
    '123 ',
    '1/',
    '1{,}',
    r'1\,',
    '1.',
    '1 1/2 ',
    r'\frac{1}',
    '1^{',
  )
  for piece in pieces + digits:
    text = piece * (200_000 // len(piece))
    for mode in answers.MODES:
      answers.extract(text, mode)
      answers.well_formed(text, mode)
