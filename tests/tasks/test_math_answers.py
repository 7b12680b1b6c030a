"""Mathematical answers: equal and unequal pairs, costly formulas."""

import json
import pathlib
import time

import pytest

from rl_jax.tasks import answers, math_answers

PAIRS = pathlib.Path(__file__).with_name('math_pairs.jsonl')
BOMBS = (
  '(10^8)!',
  '((9!)!)!',
  '9^{9^{9^9}}',
  '9^9^9^9',
  '(9^{99})^{99}',
  '((9^{99})^{99})^{99}',
  '10^{10^{10}}',
  '99999999^{99999999}',
  r'\binom{10^9}{5\cdot 10^8}',
  r'\binom{999999999}{499999999}',
  r'{999999999 \choose 499999999}',
  r'\sum_{k=1}^{10^9} \frac{1}{k}',
  r'\sum_{k=1}^{999999999} \sin k',
  r'\prod_{k=1}^{10^8} k',
  r'\int_0^1 \sin(\sin(\sin(\sin(x^x)))) dx',
  r'\int e^{x^2} \cos(x^3) \log(x) dx',
  r'\lim_{x\to 0} \frac{\sin(\tan x)-\tan(\sin x)}{x^7}',
  '(x+1)^{9999}',
  '(x+y+z+1)^{99}',
  '(x+y+z)^{30}(x-y)^{30}(a+b+c)^{30}',
  r'\sqrt{' * 40 + '2' + '}' * 40,
  r'\frac{1}{1+' * 60 + 'x' + '}' * 60,
  '(' * 120 + '1' + ')' * 120,
  '{' * 140 + '1' + '}' * 140,
  '1+' * 140 + '1',
  'x' * 290,
  '9' * 290,
  '1e99999999',
  '10^{-99999999}',
  r'\sqrt{' + '9' * 200 + '}',
  r'\sqrt[99999]{99999999999999999999}',
  r'\log_{2}{(9^{99999999})}',
  r'\sin(10^{99})\cos(10^{99})\tan(10^{99})',
  r'\gcd(10^{9999}, 3^{9999})',
  r'\left(\frac{1}{3}\right)^{99999999}',
  r'|x|' * 60,
  r'\begin{pmatrix}' + r'1&2\\' * 60 + r'\end{pmatrix}',
  '(' + '1,' * 140 + '1)',
  r'\{' + '1,' * 140 + r'1\}',
  r'\pm' * 90 + '1',
  r'1\pm 1,' * 40,
  'x=' * 140 + '1',
  'e^{e^{e^{e^{99}}}}',
  r'\tan(\tan(\tan(\tan(\tan(\tan(\tan(\tan(x))))))))',
  'x^{' * 60 + 'x' + '}' * 60,
  '2**99999999',
  r'\frac{' * 50 + '1' + '}{3}' * 50,
  r'\pi^{99}\pi^{99}\pi^{99}',
)


def test_pairs():
  """Every deserved answer passes, and no other."""
  pairs = [json.loads(line) for line in PAIRS.read_text().splitlines()]
  assert len(pairs) >= 600
  assert sum(pair['equal'] for pair in pairs) >= 300
  wrong = [
    pair
    for pair in pairs
    if answers.math_equal(pair['answer'], pair['gold']) is not pair['equal']
  ]
  assert wrong == []


def test_right_answers_equal_themselves():
  golds = {json.loads(line)['gold'] for line in PAIRS.read_text().splitlines()}
  assert [g for g in golds if not answers.math_equal(g, g)] == []


def test_formulas_that_cannot_be_evaluated_are_wrong_at_once():
  """Bounds hold before anything is evaluated: no bomb reaches a time limit."""
  golds = ('5', r'\sqrt{2}', 'x^2+1', '(1,2)', r'\{1,2\}', 'y=2x', '2^{10}')
  for bomb in BOMBS:
    for gold in golds:
      start = time.process_time()
      assert not answers.math_equal(bomb, gold), (bomb, gold)
      assert time.process_time() - start < 2.0, (bomb, gold)


SAME_FORMS = [
  ['3', '+3', '3.0', r'\frac{6}{2}', 'x = 3', r'3\text{ cm}', r'\$3'],
  ['-3', '−3', 'x=-3', '-3.0'],
  ['0.5', r'\frac12', '1/2', r'\dfrac{2}{4}', '50/100'],
  ['50', r'50\%'],
  [r'2\sqrt{3}', r'\sqrt{12}', r'\sqrt{3} \cdot 2', r'\sqrt 3 \times 2'],
  ['2+x', 'x + 2', 'y = x+2'],
  ['2 + y'],
  ['(1, 2)', r'\left(1, \frac{4}{2}\right)'],
  ['[1,2]', '[1, 2.0]'],
  ['(2,1)'],
  [r'\{1, 2\}', '2,1', '1, 2', 'x = 1, x = 2'],
  [r'\text{yes}', 'Yes'],
  ['6'],
  [r'2 \times 3'],  # a formula is not a numeral
  ['x < 3', 'x<3', '3 > x', '3.0>x'],
  [r'\frac{1}{e}', 'e^{-1}', r'\mathrm{e}^{-1}'],
  [r'\{\}', r'\emptyset', r'\varnothing'],
  ['1, 2, 3', r'3, 1, \text{ and } 2', '1, 2 and 3'],
  [
    r'\begin{pmatrix}1\\2\end{pmatrix}',
    r'\left(\begin{array}{c}1\\2\end{array}\right)',
  ],
  ['1=2=3'],
  ['e^{-30}', r'\frac{1}{e^{30}}'],  # small values are not nothing
  ['e^{-31}'],
  [r'\frac{\sqrt{2}}{10^{15}}'],
  [r'\frac{\sqrt{3}}{10^{15}}', r'\sqrt{3}\cdot 10^{-15}'],
  [r'\frac{1}{2^{99}}', '2^{-99}'],
  [r'\frac{1}{2^{98}}'],
  [r'9.11\times 10^{-31}'],
  ['0'],
]


def test_normal_forms():
  """Equal within a line of the table, different between lines."""
  forms = [{math_answers.normal_form(x) for x in line} for line in SAME_FORMS]
  assert [len(line) for line in forms] == [1] * len(SAME_FORMS), forms
  assert len(set.union(*forms)) == len(SAME_FORMS), forms


def test_normal_forms_of_long_answers_are_their_text():
  text = '(' * 50_000
  assert math_answers.normal_form(text) == text
  assert math_answers.normal_form('9' * 299 + '!')


@pytest.mark.parametrize(
  ('answer', 'gold', 'right'),
  [
    ('204 cm', '204', True),
    ('204 cm', '205', False),
    ('12 square feet', '12', True),
    ('60 km/h', r'60\text{ km/h}', True),
    ('60 miles per hour', '60', True),
    ('5 cm^2', '5', True),
    (r'16\pi cm', r'16\pi', True),
    ('50 percent', r'50\%', True),
    ('4 days, 3', '4', False),
    ('2 m', '2', False),  # m may be a variable
    ('2 x', '2', False),
    ('cm', '1', False),
  ],
)
def test_units_in_plain_letters_are_dropped(answer, gold, right):
  """Released graders drop them, too; those of one letter may be variables."""
  assert answers.math_equal(answer, gold) is right
