"""Chain: steps from left to right, a teacher that errs, two verifiers."""

import re

import jax
import numpy as np
import pytest

from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.tasks import Example
from rl_jax.tasks.base import SPLITS
from rl_jax.worlds import BelievedChain, Chain, chain

TOKENIZER = CharTokenizer(Chain.alphabet + 'x')  # x is in no grammar
PROBLEM = Example(prompt='3+4*2-9=', answer='5', id=0)
RIGHT = '<3+4=7;7*2=4;4-9=5>5'


def test_steps_by_hand():
  """From left to right, no precedence, modulo 10."""
  assert chain.steps('3+4*2-9') == ['3+4=7', '7*2=4', '4-9=5']
  assert chain.value('0-1') == 9


@pytest.mark.parametrize(
  'response, expected',
  [
    (RIGHT, dict(outcome=1, format=1, steps=1, mode=1, cluster_id=5)),
    ('5', dict(outcome=1, format=1, steps=0, mode=0, cluster_id=5)),
    ('4', dict(outcome=0, format=1, steps=0, mode=0, hit_rank=0)),
    # A slip with which the thought continues.
    ('<3+4=8;8*2=6;6-9=7>7', dict(outcome=0, format=1, steps=0, mode=1)),
    ('<3+4=7;7*2=5;4-9=5>5', dict(outcome=1, steps=2 / 3, mode=1)),
    ('<3+4=7>5', dict(outcome=1, steps=1 / 3, mode=1)),
    (RIGHT.replace('>', ';3+4=7>'), dict(outcome=1, steps=1, mode=2)),
    ('<>5', dict(outcome=0, format=0, mode=1, cluster_id=-1, num_answers=-1)),
    ('55', dict(outcome=0, format=0, mode=0, format_id=3)),
    ('', dict(outcome=0, format=0, mode=3, format_id=3)),
    ('=5', dict(outcome=0, format=0, mode=3, format_id=3)),
    (RIGHT[:-1], dict(outcome=0, format=0, steps=0, mode=1, format_id=3)),
    (RIGHT + '>', dict(outcome=0, format=0)),
    ('5\n', dict(outcome=0, format=0)),
    ('٥', dict(outcome=0, format=0)),  # a digit, but not ASCII
  ],
)
def test_rewards_by_hand(response, expected):
  found = Chain().reward(PROBLEM, response)
  assert {name: found[name] for name in expected} == pytest.approx(expected)
  assert found['difficulty'] == 3 / 8
  if found['format']:
    assert found['format_id'] == found['mode']


@pytest.mark.parametrize(
  'response, mode, format_id',
  [
    ('=5', 0, 0),
    ('*' + RIGHT, 2, 2),
    ('=55', 0, 3),  # starts like a guess, but is none
    ('+' + RIGHT[:9], 1, 3),  # cut
    ('*', 2, 3),
    (RIGHT, 3, 3),  # no mode was chosen
    ('x=5', 3, 3),  # only the first character chooses
    ('', 3, 3),
  ],
)
def test_what_has_no_form_is_no_guess(response, mode, format_id):
  """The mode is the one that was chosen; the format is a separate one."""
  found = Chain(controls=True).reward(PROBLEM, response)
  assert (found['mode'], found['format_id']) == (mode, format_id)
  assert found['guessed'] == (mode == 0)


def test_splits_share_no_problem():
  """Also of short problems, of which there are few."""
  task = Chain(min_operations=1, max_operations=2, num_train=1000)
  problems = [
    {task.example(split, i).prompt for i in range(500)} for split in SPLITS
  ]
  for i in range(3):
    assert not problems[i] & problems[i - 1]


def test_operations_are_the_difficulty():
  task = Chain(min_operations=3, max_operations=5)
  lengths = {len(task.example('train', i).prompt) for i in range(100)}
  assert lengths == {8, 10, 12}


def test_targets_are_solutions():
  """Without an error of the teacher all of them are right and whole."""
  task = Chain(guesses=0.0)
  for i in range(50):
    example = task.example('validation', i)
    found = task.reward(example, task.target(example))
    assert found['outcome'] == found['steps'] == found['mode'] == 1.0


def test_teacher_errs_as_often_as_it_is_told():
  """Shares within four standard errors; guesses are right."""
  task = Chain(guesses=0.4, slips=0.12, rechecks=0.15)
  guesses = thoughts = twice = steps = wrong = 0
  for i in range(2000):
    example = task.example('train', i)
    target = task.target(example)
    assert task.reward(example, target)['format'] == 1.0
    if len(target) == 1:
      guesses += target == example.answer
      continue
    thoughts += 1
    written = re.findall('(.)(.)(.)=(.)', target)
    twice += len(written) > len(example.prompt) // 2 - 1
    steps += len(written)
    wrong += sum(chain.value(a + op + b) != int(c) for a, op, b, c in written)
  assert abs(guesses / 2000 - 0.4) < 4 * np.sqrt(0.24 / 2000)
  assert abs(twice / thoughts - 0.15) < 4 * np.sqrt(0.13 / thoughts)
  assert abs(wrong / steps - 0.12) < 4 * np.sqrt(0.11 / steps)


def test_hints_are_first_steps():
  """The problem, its answer and its solution stay the same."""
  task = Chain()
  hinted = task.hinted(PROBLEM)
  assert hinted.prompt == '3+4=7;7*2=4;3+4*2-9='
  assert task.hinted(hinted) == hinted
  assert task.reward(hinted, RIGHT)['steps'] == 1.0
  assert task.target(hinted) == task.target(PROBLEM)
  for share, given in ((0.0, 1), (0.34, 2), (0.6, 2), (1.0, 2)):
    prompt = task.hinted_by(PROBLEM, share).prompt
    assert prompt.count(';') == given and prompt.endswith(';3+4*2-9=')
  some = Chain(hints=0.5)
  given = ['=' in some.example('train', i).prompt[:-1] for i in range(200)]
  assert 60 < sum(given) < 140


def test_solved_problems_stand_in_front():
  """The question stays the same, thoughts and hints in front of it or not."""
  task = Chain()
  solved = [(PROBLEM, RIGHT), (task.hinted(PROBLEM), '4')]
  found = task.with_examples(PROBLEM, solved)
  assert found.prompt.startswith(f'3+4*2-9={RIGHT};3+4=7;')
  assert found.prompt.endswith('=4;3+4*2-9=')
  assert task.reward(found, RIGHT) == task.reward(PROBLEM, RIGHT)
  assert task.target(found) == task.target(PROBLEM)


def edits(rng, text):
  """A response with a character more, less or another."""
  place = rng.integers(len(text) + 1)
  character = Chain.alphabet[rng.integers(len(Chain.alphabet))]
  rest = text[place + rng.integers(2) :]
  return text[:place] + character * rng.integers(2) + rest


def agree(task, examples, rows):
  """Both verifiers on rows of tokens; the host on their text."""
  width = max(map(len, rows)) + 1
  tokens = np.zeros((len(rows), width), np.int32)
  for i, row in enumerate(rows):
    tokens[i, : len(row)] = row
  length = np.asarray([len(row) for row in rows], np.int32)
  answers = task.device_answers(examples, TOKENIZER)
  found = jax.jit(lambda *x: task.reward_device(*x, TOKENIZER))(
    tokens, length, *answers
  )
  found = {name: np.asarray(x) for name, x in found.items()}
  for i, (example, row) in enumerate(zip(examples, rows, strict=True)):
    ids = row[: row.index(1)] if 1 in row else row
    expected = task.reward(example, TOKENIZER.decode(ids))
    mine = {name: x[i] for name, x in found.items()}
    assert mine == pytest.approx(expected), (example, TOKENIZER.decode(row))
  return found


@pytest.mark.parametrize(
  'kind, fields',
  [
    (Chain, dict(max_operations=4, guesses=0.3, slips=0.3, rechecks=0.3)),
    (Chain, dict(max_operations=4, guesses=0.3, rechecks=0.3, controls=True)),
    (Chain, dict(max_operations=8, guesses=0.3, slips=0.1, rechecks=0.3)),
    (BelievedChain, dict(max_operations=4, doubt=1.0, rechecks=0.3)),
  ],
)
def test_verifiers_agree(kind, fields):
  """On 10,000 random responses and 1,000 that are nearly right."""
  rng = np.random.default_rng(0)
  task = kind(min_operations=1, **fields)
  examples = [task.example('test', i) for i in range(1000)]
  nearly = [TOKENIZER.encode(edits(rng, task.target(e))) for e in examples]
  found = agree(task, examples, [[*row, 1] for row in nearly])
  assert 30 < found['outcome'].sum() < 800
  assert set(found['mode']) >= {0, 1, 2} and set(found['format_id']) >= {
    1,
    2,
    3,
  }
  # Any tokens: ends, padding and ids of no character inside the response.
  rows = [
    [int(x) for x in rng.integers(0, TOKENIZER.vocab_size, rng.integers(8))]
    for _ in range(10_000)
  ]
  agree(task, [examples[i % 1000] for i in range(10_000)], rows)


def test_tokens_are_described():
  """Segments begin after < ; and >; the thought has both its marks."""
  rows = ['<3+4=7;7*2=4>4', '4', '<3+4']
  tokens = np.zeros((3, 16), np.int32)
  for row, text in zip(tokens, rows, strict=True):
    row[: len(text) + 1] = [*TOKENIZER.encode(text), 1]
  length = np.asarray([len(text) + 1 for text in rows], np.int32)
  found = Chain().row_inputs_device(tokens, length, TOKENIZER)

  def show(x):
    return [''.join(map(str, row)) for row in np.asarray(x, int)]

  assert show(found['segment_start_BT']) == [
    '1100000100000100',
    '1000000000000000',
    '1100000000000000',
  ]
  assert show(found['think_mask_BT']) == [
    '1111111111111000',
    '0000000000000000',
    '1111000000000000',
  ]


def test_bad_fields_are_named():
  with pytest.raises(ValueError, match='Chain.min_operations = 9'):
    Chain(min_operations=9)
  with pytest.raises(ValueError, match='Chain.slips = 2'):
    Chain(slips=2.0)
