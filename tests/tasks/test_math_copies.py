"""Copies of the question, in any spelling, and answers that are none."""

import json

import pytest

from rl_jax.tasks import QuestionAnswer, answers, math_copies

# question, right answer, copies that are equal to it
COPIES = [
  (
    r'Write $\frac{3}{20}$ as a decimal.',
    '0.15',
    ['3/20', r'\frac{6}{40}', r'(\frac{3}{20})', r'x=\dfrac{3}{20}'],
  ),
  (r'Write $3 \div 20$ with a point.', '0.15', ['3/20', r'\frac{6}{40}']),
  ('Give 3 divided by 20 as a decimal.', '0.15', ['3/20']),
  (r'Write $15\%$ as a decimal.', '0.15', [r'15\%', r'\frac{3}{20}']),
  (r'Write $0.15$ as a percent.', r'15\%', ['0.15']),
  (r'Write $0.15$ as a fraction.', r'\frac{3}{20}', ['0.15', '.150']),
  (
    r'Write $0.\overline{3}$ as a fraction.',
    r'\frac{1}{3}',
    [r'0.\overline{3}'],
  ),
  (
    r'Write $\frac{18}{4}$ in lowest terms.',
    r'\frac{9}{2}',
    ['18/4', r'\frac{36}{8}'],
  ),
  (
    r'Write $4\frac{1}{2}$ as a quotient.',
    r'\frac{9}{2}',
    ['4 1/2', r'4\frac12'],
  ),
  (
    r'Write $\frac{9}{2}$ as a mixed number.',
    r'4\frac{1}{2}',
    ['9/2', r'\frac{18}{4}'],
  ),
  ('Write 4500 in scientific notation.', r'4.5 \times 10^{3}', ['4,500']),
  (r'Write $1024$ as a power of 2.', '2^{10}', ['1024', '1{,}024']),
  (
    r'Simplify $\sqrt{242}$.',
    r'11\sqrt{2}',
    [
      r'\sqrt{242}',
      r'(\sqrt{242})',
      r'1\sqrt{242}',
      r'\frac{\sqrt{242}}{1}',
      '242^{1/2}',
      '242^{0.5}',
      r'\sqrt[2]{242}',
      r'\sqrt{242.0}',
      r'x=\sqrt{242}',
      r'\sqrt{242}\text{ cm}',
      r'\frac{\sqrt{968}}{2}',
    ],
  ),
  (
    r'Rationalize $\frac{1}{\sqrt{2}}$.',
    r'\frac{\sqrt{2}}{2}',
    [r'1/\sqrt2', '2^{-1/2}', r'\sqrt{\frac12}', r'\sqrt{0.5}'],
  ),
  (r'Write $x^{-2}$ otherwise.', r'\frac{1}{x^2}', ['x^{-2}']),
  (r'Write $5^{1/2}$ with a root.', r'\sqrt{5}', ['5^{1/2}']),
  (r'Solve $y-2x=3$ for $y$.', 'y=2x+3', ['y - 2x = 3', '3=y-2x']),
  (
    r'Write $(\frac{3}{20}, \frac12)$ in decimals.',
    '(0.15,0.5)',
    ['(3/20,1/2)'],
  ),
  (
    r'Simplify $\sqrt{242}$ and $\sqrt{8}$.',
    r'11\sqrt2, 2\sqrt2',
    ['242^{1/2},8^{1/2}', r'\sqrt8,11\sqrt2'],
  ),
]
# question, right answer, what is right although the question has such numbers
NO_COPIES = [
  (r'Write $\frac{3}{20}$ as a decimal.', '0.15', ['0.15', '.150']),
  (
    r'Simplify $\sqrt{242}$.',
    r'11\sqrt{2}',
    [r'11 \sqrt 2', r'\sqrt{2}\cdot 11', r'11\cdot 2^{1/2}'],
  ),
  (r'Rationalize $\frac{1}{\sqrt{2}}$.', r'\frac{\sqrt{2}}{2}', [r'\sqrt2/2']),
  (
    r'Write $\frac{18}{4}$ in lowest terms.',
    r'\frac{9}{2}',
    [r'\frac92', r'4\frac12', '4.5'],
  ),
  (
    r'Of two coins $\frac{1}{2}$ fall. How likely is the other?',
    r'\frac{1}{2}',
    [r'\frac12', '1/2', '0.5', r'\frac{2}{4}', r'50\%'],
  ),
  ('Heads has probability 0.5. And tails?', r'\frac{1}{2}', ['0.5', '1/2']),
  (r'Which side has a square of $\sqrt{2}^2$?', r'\sqrt{2}', ['2^{1/2}']),
  (
    r'How far in a second at $3 \times 10^8$ m/s?',
    '300000000',
    [r'3\times 10^8'],
  ),
  (r'Expand $(1+x)^2 - x^2 - x$.', 'x+1', ['1+x']),
  (r'What is $12\sqrt{3} - 10\sqrt{3}$?', r'2\sqrt{3}', [r'2\sqrt3']),
  (r'A price rises by $15\%$. By what?', r'15\%', ['15', '0.15']),
  (r'Which number is $x$ if $x = 5$?', '5', ['x=5', '5.0']),
  (r'Solve $2k>10$ where $k>5$.', 'k>5', ['5<k']),
]


def flat(table):
  return [(q, gold, answer) for q, gold, several in table for answer in several]


@pytest.mark.parametrize(('question', 'gold', 'answer'), flat(COPIES))
def test_copies_in_another_spelling(question, gold, answer):
  assert answers.math_equal(answer, gold)
  assert math_copies.copied(answer, gold, question)
  assert not math_copies.copied(gold, gold, question)


@pytest.mark.parametrize(('question', 'gold', 'answer'), flat(NO_COPIES))
def test_the_question_may_hold_the_answer(question, gold, answer):
  assert answers.math_equal(answer, gold)
  assert not math_copies.copied(answer, gold, question)


@pytest.mark.parametrize(
  ('answer', 'gold', 'copied'),
  [
    (r'\sqrt{242}', r'11\sqrt{2}', True),
    (r' \dfrac{9}{2} ', '4.5', True),
    (r'11\sqrt 2', r'11\sqrt{2}', False),
    ('4.5', '4.5', False),
    ('4', '4', False),
    (r'\sqrt{12}', r'2\sqrt{3}', False),
    (r'\frac{9}{2}', r'\frac92', False),
  ],
)
def test_a_formula_of_the_question_is_a_copy(answer, gold, copied):
  question = r'Simplify $\sqrt{242}$ and $11\sqrt{2}$; 4, 4.5, $\frac{9}{2}$.'
  assert math_copies.copied(answer, gold, question) is copied


@pytest.mark.parametrize('extract', ['boxed', 'whole'])
def test_copying_the_question_earns_nothing(tmp_path, extract):
  path = tmp_path / 'rows.jsonl'
  row = {'question': r'Simplify $\sqrt{12}$.', 'answer': r'2\sqrt{3}'}
  path.write_text(json.dumps(row) + '\n')
  task = QuestionAnswer(
    sources={'train': str(path)}, verifier='math', extract=extract
  )
  example = task.example('train', 0)

  def reward(text):
    return task.reward(example, rf'\boxed{{{text}}}')['outcome']

  for copy in (r'\sqrt{12}', r'(\sqrt{12})', r'1\sqrt{12}', '12^{1/2}'):
    assert reward(copy) == 0.0
  assert reward(r'2 \sqrt 3') == reward(r'\sqrt{3} \cdot 2') == 1.0


def test_answers_that_are_too_long_for_any_formula_are_not_read():
  """Nor are formulas of the question that are."""
  question = r'Simplify $\sqrt{242}$ or $' + '(x+1)^{9}' * 2000 + '$.' * 2000
  assert math_copies.copied(r'1\sqrt{242}', r'11\sqrt{2}', question)
  for answer in ('9' * 100_000, r'\begin{array}' * 10_000):
    assert not math_copies.copied(answer, r'11\sqrt{2}', question)
