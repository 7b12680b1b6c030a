"""Clues: the posterior, its best response, and the device's verifier."""

import collections
import itertools

import numpy as np
import pytest

from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.tasks import base
from rl_jax.worlds import Clues
from rl_jax.worlds.clues import ABSTAIN

TASK = Clues(num_letters=3, num_clues=2, reliability=0.5)


def test_posterior_by_hand():
  """Other letters have 1/4: 'aa' is 4 to 1 to 1, 'ab' 2 to 2 to 1."""
  pair = base.Example(prompt='aa=', answer='a', id=0)
  np.testing.assert_allclose(TASK.posterior(pair), [4 / 6, 1 / 6, 1 / 6])
  mixed = base.Example(prompt='ab=', answer='c', id=0)
  np.testing.assert_allclose(TASK.posterior(mixed), [0.4, 0.4, 0.2])


def test_posterior_is_that_of_the_draws():
  """E3: answers after each prompt among 9,000 examples, within 5 errors."""
  task = Clues(num_letters=3, num_clues=2, reliability=0.5, num_train=9000)
  counts = collections.defaultdict(collections.Counter)
  for i in range(9000):
    example = task.example('train', i)
    counts[example.prompt][example.answer] += 1
  assert len(counts) == 9
  for prompt, found in counts.items():
    n = found.total()
    expected = task.posterior(base.Example(prompt=prompt, answer='a', id=0))
    for letter, p in zip(task.letters, expected, strict=True):
      assert abs(found[letter] / n - p) < 5 * (p * (1 - p) / n) ** 0.5


@pytest.mark.parametrize('u', [0.3, 0.45, 0.6, 0.7])
def test_best_response_abstains_below_u(u):
  """E0: expected rewards of all responses, by enumeration of the answers."""
  for clues in itertools.product(TASK.letters, repeat=2):
    prompt = ''.join(clues) + '='
    examples = [base.Example(prompt, y, 0) for y in TASK.letters]
    posterior = TASK.posterior(examples[0])
    weights = {'outcome': 1.0, 'abstained': u}
    expected = {
      said: sum(
        p * base.combine(TASK.reward(example, said), weights)
        for p, example in zip(posterior, examples, strict=True)
      )
      for said in TASK.letters + ABSTAIN
    }
    best = max(expected, key=expected.__getitem__)
    assert (best == ABSTAIN) == (max(posterior) < u)


def test_device_verifier_agrees():
  """E0: on texts that are right, wrong, no answer, too long, and empty."""
  tokenizer = CharTokenizer(TASK.alphabet)
  example = TASK.example('train', 0)
  texts = ('a', 'b', 'c', '?', '??', 'a?', '', '=')
  response = np.full((len(texts), 3), tokenizer.eos_ids[0], np.int32)
  for row, text in enumerate(texts):
    response[row, : len(text)] = tokenizer.encode(text)
  answers = TASK.device_answers([example] * len(texts), tokenizer)
  lengths = np.array([len(text) + 1 for text in texts], np.int32)
  found = TASK.reward_device(response, lengths, *answers, tokenizer)
  for row, text in enumerate(texts):
    for name, value in TASK.reward(example, text).items():
      assert found[name][row] == value, (text, name)


def test_every_fifth_target_is_no_answer():
  """Examples repeat, and their prompts have the alphabet's characters."""
  for i in range(20):
    example = TASK.example('train', i)
    assert example == TASK.example('train', i)
    assert set(example.prompt) <= set(TASK.alphabet)
    assert TASK.target(example) == (ABSTAIN if i % 5 == 0 else example.answer)
  with pytest.raises(ValueError, match='Clues.reliability = 1.0'):
    Clues(reliability=1.0)
