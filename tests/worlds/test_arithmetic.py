"""Addition and subtraction: splits, answers, host and device verifier."""

import jax
import numpy as np
import pytest

from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.pieces import row_keys
from rl_jax.tasks import Described
from rl_jax.tasks.base import SPLITS, Example
from rl_jax.worlds import Arithmetic


def _parse(prompt):
  operation = '+' if '+' in prompt else '-'
  a, b = prompt[:-1].split(operation)
  return int(a), operation, int(b)


# The examples of every run: changing them changes all published numbers.
PINNED = {
  'train': [('511+843=', '1354'), ('198+484=', '682')],
  'validation': [('754-323=', '431'), ('918-306=', '612')],
  'test': [('847-412=', '435'), ('869+786=', '1655')],
}


@pytest.mark.parametrize('split', SPLITS)
def test_examples_are_pinned(split):
  examples = [Arithmetic().example(split, i) for i in (0, 1)]
  assert [(e.prompt, e.answer) for e in examples] == PINNED[split]


def test_all_examples_of_one_digit():
  """45 pairs of 1..9: every pair in one split, each answer right."""
  task = Arithmetic(digits=1)
  counts = {split: task.num_prompts(split) for split in SPLITS}
  assert counts == {'train': 37, 'validation': 4, 'test': 4}
  pairs = []
  for split in SPLITS:
    for i in range(counts[split]):
      example = task.example(split, i)
      a, operation, b = _parse(example.prompt)
      assert int(example.answer) == (a + b if operation == '+' else a - b)
      assert task.split_of(a, b) == task.split_of(b, a) == split
      assert example.id == i
      assert task.target(example) == example.answer
      pairs.append((min(a, b), max(a, b)))
  assert len(pairs) == len(set(pairs)) == 45


def test_three_digits():
  """405,450 unordered pairs; both operators, both orders, no pair twice."""
  task = Arithmetic()
  assert task.num_prompts('train') == 324_360
  assert task.num_prompts('validation') == 1000
  assert task.num_prompts('test') == 2000
  parsed = [_parse(task.example('test', i).prompt) for i in range(2000)]
  assert all(100 <= x <= 999 for a, _, b in parsed for x in (a, b))
  assert len({(min(a, b), max(a, b)) for a, _, b in parsed}) == 2000
  plus = sum(operation == '+' for _, operation, _ in parsed)
  ascending = sum(a < b for a, _, b in parsed)
  # 4 standard deviations of a fair coin.
  assert abs(plus - 1000) < 4 * 2000**0.5 / 2
  assert abs(ascending - 1000) < 4 * 2000**0.5 / 2


def test_unsigned_answers_are_never_negative_and_keep_their_pairs():
  signed = Arithmetic(operations='-')
  unsigned = Arithmetic(operations='-', signed=False)
  negative = 0
  for i in range(200):
    a, _, b = _parse(signed.example('train', i).prompt)
    c, _, d = _parse(unsigned.example('train', i).prompt)
    assert {a, b} == {c, d} and c >= d
    negative += signed.example('train', i).answer.startswith('-')
  assert negative > 50


def test_bad_arguments_are_named():
  with pytest.raises(ValueError, match='Arithmetic.digits = 0'):
    Arithmetic(digits=0)
  with pytest.raises(ValueError, match='Arithmetic.operations'):
    Arithmetic(operations='*')
  with pytest.raises(ValueError, match="split 'dev'"):
    Arithmetic().num_prompts('dev')
  with pytest.raises(IndexError, match='index 1000'):
    Arithmetic().example('validation', 1000)
  with pytest.raises(ValueError, match='operands 1, 100'):
    Arithmetic().split_of(1, 100)


@pytest.mark.parametrize(
  'task',
  [
    Arithmetic(digits=1),
    Described(Arithmetic(digits=1)),
    Described(Arithmetic(digits=1, signed=False, reverse=True)),
  ],
)
def test_device_verifier_agrees_with_host_on_random_tokens(task):
  """Padding, end tokens, truncation and near misses included."""
  tokenizer = CharTokenizer(task.alphabet)
  random = np.random.default_rng(0)
  examples = [task.example('train', i % 37) for i in range(4000)]
  width = 6
  tokens = random.integers(0, tokenizer.vocab_size, (4000, width))
  lengths = random.integers(0, width + 1, 4000)
  for row in range(0, 4000, 2):  # half of them start with the answer
    ids = tokenizer.encode(examples[row].answer)
    tokens[row, : len(ids)] = ids
    if row % 4 == 0:
      tokens[row, len(ids)] = tokenizer.eos_ids[0]
  answer, answer_length = task.device_answers(examples, tokenizer)

  @jax.jit
  def reward(tokens, lengths, answer, answer_length):
    return task.reward_device(tokens, lengths, answer, answer_length, tokenizer)

  device = reward(
    tokens.astype(np.int32), lengths.astype(np.int32), answer, answer_length
  )
  host = []
  for example, row, length in zip(examples, tokens, lengths, strict=True):
    ids = list(row[:length])
    if tokenizer.eos_ids[0] in ids:
      ids = ids[: ids.index(tokenizer.eos_ids[0])]
    host.append(task.reward(example, tokenizer.decode(ids)))
  assert device.keys() == host[0].keys()
  for name, value in device.items():
    np.testing.assert_array_equal(value, [row[name] for row in host], name)
  assert 500 < device['outcome'].sum() < 3500


def test_descriptions_by_hand():
  """57 + 68 = 125 carries twice; 521 - 430 borrows at the tens only.

  Reversed '70-' is -7 and '7-' too; '--7' and a fourth digit are not numbers.
  """
  task = Described(Arithmetic(digits=2, reverse=True))

  def example(prompt):
    return Example(prompt=prompt, answer='', id=0)

  def rewards(prompt, text=''):
    return task.reward(example(prompt), text)

  assert rewards('57+68=')['difficulty'] == 3.0
  assert rewards('521-430=')['difficulty'] == 2.0
  assert rewards('430-521=')['difficulty'] == 2.0
  assert rewards('57+68=')['reference_reward'] == 0.0
  assert rewards('41-20=')['reference_reward'] == 1.0
  clusters = {
    text: rewards('41-20=', text)['cluster_id']
    for text in ('7', '70', '7-', '70-', '0', '0-', '', '7--', '1234', '-7')
  }
  assert list(clusters.values()) == [14, 14, 15, 15, 0, 0, -1, -1, -1, -1]
  described = rewards('41-20=', '7').keys()
  described -= {'outcome', 'format', 'reference_reward'}
  assert {f'{name}_B' for name in described} <= row_keys.KEYS.keys()
  with pytest.raises(ValueError, match='Arithmetic has 20000000 answers'):
    Described(Arithmetic(digits=6))
