"""Questions with several right options, judged twice."""

import jax
import numpy as np
import pytest

from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.tasks import Example
from rl_jax.tasks.base import SPLITS
from rl_jax.worlds import MultipleChoice

TASK = MultipleChoice()
PROBLEM = Example(prompt='3:12,14,21,33,80=', answer='acd', id=0)


@pytest.mark.parametrize(
  ('response', 'outcome', 'partial', 'form'),
  [
    ('acd', 1, 1, 1),
    ('dca', 1, 1, 1),
    ('ac', 0, 2 / 3, 1),
    ('d', 0, 1 / 3, 1),
    ('ab', 0, 0, 1),  # a wrong option: nothing
    ('abcde', 0, 0, 1),
    ('aa', 0, 0, 0),
    ('', 0, 0, 0),
    ('acd=', 0, 0, 0),
    ('ACD', 0, 0, 0),
  ],
)
def test_by_hand(response, outcome, partial, form):
  found = TASK.reward(PROBLEM, response)
  assert found == {'outcome': outcome, 'partial': partial, 'format': form}


def test_examples_are_right_and_splits_share_none():
  """The divisor decides; at least two are right and one is wrong."""
  prompts = {split: set() for split in SPLITS}
  for split in SPLITS:
    for i in range(200):
      example = TASK.example(split, i)
      divisor, numbers = example.prompt.rstrip('=').split(':')
      right = [int(n) % int(divisor) == 0 for n in numbers.split(',')]
      letters = [x for x, ok in zip('abcde', right, strict=True) if ok]
      assert ''.join(letters) == example.answer and 2 <= len(letters) < 5
      assert TASK.reward(example, TASK.target(example))['outcome'] == 1
      prompts[split].add(example.prompt)
  assert not prompts['train'] & prompts['test']
  assert not prompts['validation'] & (prompts['train'] | prompts['test'])


def test_verifiers_agree():
  """11,000 random responses, a third of them letters only."""
  tokenizer, rng = CharTokenizer(TASK.alphabet), np.random.default_rng(0)
  examples = [TASK.example('test', i) for i in range(250)] * 44
  tokens = rng.integers(0, tokenizer.vocab_size, (11_000, 6))
  letters = np.asarray(tokenizer.encode(TASK.letters))
  tokens[::3] = rng.choice(letters, tokens[::3].shape)
  length = rng.integers(0, 7, 11_000)
  answers = TASK.device_answers(examples, tokenizer)
  found = jax.jit(lambda *x: TASK.reward_device(*x, tokenizer))(
    tokens.astype(np.int32), length.astype(np.int32), *answers
  )
  found = {name: np.asarray(x) for name, x in found.items()}
  for i, example in enumerate(examples):
    ids = tokens[i, : length[i]].tolist()
    ids = ids[: ids.index(1)] if 1 in ids else ids
    expected = TASK.reward(example, tokenizer.decode(ids))
    mine = {name: x[i] for name, x in found.items()}
    assert mine == pytest.approx(expected), (example, ids)
  assert found['outcome'].sum() > 14 and found['format'].mean() < 0.5
