"""Requests and calls."""

import pytest

from rl_jax.tasks.base import Example
from rl_jax.worlds import FunctionCalls
from rl_jax.worlds.function_calls import calls_of

GOLD = 'a(x=1,y=2)b(u=3)'


def score(response, granularity, answer=GOLD):
  task = FunctionCalls(granularity=granularity)
  return task.reward(Example('', answer, 0), response)


@pytest.mark.parametrize(
  ('response', 'fine', 'intermediate'),
  [
    (GOLD, 3.0, 3.0),
    # S = 1 + 3 + 2 = 6; one value wrong: 1 + (1 + 1) + 2 = 5, or 1 + 0 + 2.
    ('a(x=1,y=3)b(u=3)', 2.0, 0.0),
    # Parameters of a: J = 1/3 and x right; b is right.
    ('a(x=1,z=2)b(u=3)', 6 * (1 + 4 / 3 + 2) / 6 - 3, 0.0),
    # Names: J = 1/2; only the parameters of a.
    ('a(x=1,y=2)', 6 * (0.5 + 3) / 6 - 3, 6 * (0.5 + 3) / 6 - 3),
    # Another order is as good but for the equality.
    ('b(u=3)a(x=1,y=2)', 3.0, 3.0),
    ('c()', -3.0, -3.0),
    ('a(x=1,y=2', -3.0, -3.0),
  ],
)
def test_scores_by_hand(response, fine, intermediate):
  """And all or nothing."""
  assert score(response, 'fine')['correct'] == pytest.approx(fine)
  found = score(response, 'intermediate')['correct']
  assert found == pytest.approx(intermediate)
  right = response == GOLD
  assert score(response, 'coarse')['correct'] == (3.0 if right else -3.0)
  assert score(response, 'fine')['outcome'] == float(right)


@pytest.mark.parametrize(
  'text',
  ['', 'a', 'a(', 'a()b', ' a()', 'a(x=)', 'a(x=1,)', 'a(x=1,x=2)', 'A()'],
)
def test_texts_that_are_no_calls(text):
  assert calls_of(text) is None
  found = score(text, 'fine')
  assert found == {'outcome': 0.0, 'format': 0.0, 'correct': -3.0}


def test_calls_without_parameters_and_repeated_ones():
  assert calls_of('a()a()') == [{'name': 'a', 'parameters': {}}] * 2
  assert score('a()a()', 'fine')['format'] == 1.0


def test_answers_follow_the_signatures():
  """Splits have no prompt in common."""
  task = FunctionCalls(functions=3, max_calls=2, num_test=200)
  signatures, prompts = task.signatures(), {}
  assert set(signatures) == set('abc')
  for split in ('train', 'test'):
    found = [task.example(split, n) for n in range(200)]
    prompts[split] = {one.prompt for one in found}
    for one in found:
      assert task.reward(one, one.answer)['correct'] == 3.0
      for call in calls_of(one.answer):
        assert ''.join(call['parameters']) == signatures[call['name']]
      assert set(one.prompt + one.answer) <= set(task.alphabet)
  assert not prompts['train'] & prompts['test']
