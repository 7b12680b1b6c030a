"""Countdown: exact evaluation, reachable targets, host and device verifier."""

from fractions import Fraction

import jax
import numpy as np
import pytest

from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.tasks import Countdown, Example, combine, expressions
from rl_jax.tasks.base import SPLITS


@pytest.mark.parametrize(
  ('text', 'value', 'used'),
  [
    ('3*7+4', 25, [3, 7, 4]),
    ('2+3*4-5', 9, [2, 3, 4, 5]),
    ('9-3-2', 4, [9, 3, 2]),
    (' (1 + 2) / 4 ', Fraction(3, 4), [1, 2, 4]),
    ('8/(3-8/3)', 24, [8, 3, 8, 3]),
    ('7', 7, [7]),
  ],
)
def test_expressions_are_exact(text, value, used):
  assert expressions.evaluate(text) == (value, used)


@pytest.mark.parametrize(
  'text',
  [
    '9**9**9',  # TinyZero's checker accepts it and hangs
    '5//1',
    '1.5*2',  # TinyZero's checker reads it as the numbers 1 and 5
    '-5+6',  # signs are not allowed
    '+5',
    '5/0',
    '1/(2-2)',
    '05+1',
    '1_0+1',
    '1e3',
    '(1+2',
    '1+2)',
    '5(3)',
    '()',
    '',
    ' ',
    '1 2',
    '1+\n2',
    '1,2',
    'a+1',
    '__import__("os")',
    '1+2 #',
    '１+２',  # digits, but not ASCII
    '9999999',
    '(' * 150 + '1' + ')' * 150,
    '1+' * 150 + '1',
    '(' * 99 + ')' * 99,
  ],
)
def test_everything_else_is_an_expression_error(text):
  with pytest.raises(expressions.ExpressionError):
    expressions.evaluate(text)


def test_deep_parentheses_are_bounded():
  """Parentheses are as deep as 200 characters allow."""
  assert expressions.evaluate('(' * 90 + '1' + ')' * 90)[0] == 1


@pytest.mark.parametrize('grammar', ['flat', 'full'])
def test_examples_are_solvable_and_splits_disjoint(grammar):
  task = Countdown(grammar=grammar, num_validation=100, num_test=100)
  problems = {}
  for split in SPLITS:
    for i in range(100):
      example = task.example(split, i)
      assert example == task.example(split, i)
      rewards = task.reward(example, task.target(example))
      assert rewards == {'outcome': 1.0, 'format': 1.0}
      assert combine(rewards, task.reward_weights) == pytest.approx(1.0)
      target = example.meta['target']
      assert 1 <= target <= task.max_target
      assert str(target) in example.prompt
      key = (tuple(sorted(example.meta['numbers'])), target)
      assert problems.setdefault(key, split) == split
      assert len(key[0]) in (3, 4)


def test_flat_prompt_and_alphabet():
  task = Countdown()
  tokenizer = CharTokenizer(task.alphabet)
  for i in range(50):
    example = task.example('train', i)
    digits = ''.join(map(str, example.meta['numbers']))
    assert example.prompt == f'{digits}>{example.meta["target"]}='
    tokenizer.encode(example.prompt + task.target(example))


def test_full_grammar_scores():
  """[1, 5] -> 4, with texts that TinyZero's checker accepts."""
  task = Countdown(grammar='full')
  example = Example('', '5-1', 0, meta={'numbers': [1, 5], 'target': 4})

  def reward(response):
    return combine(task.reward(example, response), task.reward_weights)

  assert reward('so <answer> (5-1) </answer> done\n') == pytest.approx(1.0)
  assert reward('<answer>1</answer> no: <answer>5 - 1</answer>') == 1.0
  wrongs = '1.5', '5**1', '5//1', '5-1-1', '5-1+0', '4', '5/0', '6-2', '', ' '
  for wrong in wrongs:
    assert reward(f'<answer>{wrong}</answer>') == pytest.approx(0.1)
  for formless in ('5-1', '<answer>5-1', '</answer>5-1<answer>', ''):
    assert reward(formless) == 0.0


def test_bad_arguments_are_named():
  with pytest.raises(ValueError, match='Countdown.grammar'):
    Countdown(grammar='deep')
  with pytest.raises(ValueError, match='Countdown.max_number = 50'):
    Countdown(max_number=50)
  with pytest.raises(ValueError, match="only grammar='flat'"):
    Countdown(grammar='full').device_answers([], None)


def _responses(task, examples, random):
  """Solutions, altered solutions, random grammar strings, random strings."""
  letters = task.alphabet
  for i, example in enumerate(examples):
    solution = example.answer
    if i % 4 == 0:
      yield solution
    elif i % 4 == 1:
      at = random.integers(len(solution))
      yield solution[:at] + random.choice(list(letters)) + solution[at + 1 :]
    elif i % 4 == 2:
      digits = [str(d) for d in random.permutation(example.meta['numbers'])]
      ops = random.choice(list('+-*'), len(digits))
      yield ''.join(d + o for d, o in zip(digits, ops, strict=True))[:-1]
    else:
      yield ''.join(random.choice(list(letters), random.integers(0, 9)))


def test_device_verifier_agrees_with_host():
  """Valid and random expressions, with padding, end tokens and truncation."""
  task = Countdown(max_numbers=5, min_numbers=2)
  tokenizer = CharTokenizer(task.alphabet)
  random = np.random.default_rng(0)
  examples = [task.example('train', i) for i in range(1600)]
  texts = list(_responses(task, examples, random))
  width = 12
  tokens = random.integers(0, tokenizer.vocab_size, (len(texts), width))
  lengths = np.zeros(len(texts), np.int32)
  host = []
  for row, text in enumerate(texts):
    ids = tokenizer.encode(text)
    if random.random() < 0.3:  # padding decodes to no text
      ids.insert(random.integers(len(ids) + 1), tokenizer.pad_id)
    tokens[row, : len(ids)] = ids
    lengths[row] = len(ids)
    if random.random() < 0.5:
      tokens[row, len(ids)] = tokenizer.eos_ids[0]
      lengths[row] += 1
    host.append(task.reward(examples[row], text))
  answer, answer_length = task.device_answers(examples, tokenizer)
  device = jax.jit(task.reward_device, static_argnums=4)(
    tokens.astype(np.int32), lengths, answer, answer_length, tokenizer
  )
  for name in ('outcome', 'format'):
    np.testing.assert_array_equal(device[name], [h[name] for h in host])
  assert 400 < np.sum(device['outcome']) < 1200
