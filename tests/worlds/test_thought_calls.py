"""Calls of functions after a thought."""

import numpy as np
import pytest

from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.tasks import TextSpans
from rl_jax.tasks.base import Example
from rl_jax.worlds import FunctionCalls, ThoughtCalls, thought_calls

EXAMPLE = Example(prompt='B21;A3=', answer='b(u=2,x=1)a(w=3)', id=0)


@pytest.mark.parametrize(
  'response, outcome, form',
  [
    ('b:ux;a:w#b(u=2,x=1)a(w=3)', 1, 1),
    ('b#b(x=1,u=2)a(w=3)', 1, 1),  # trees; a thought may be anything
    ('b:ux;a:w#a(w=3)b(u=2,x=1)', 0, 1),
    ('b:ux;a:w#b(u=2,x=1)', 0, 1),
    ('#b(u=2,x=1)a(w=3)', 0, 0),  # no thought
    ('b(u=2,x=1)a(w=3)', 0, 0),
    ('b:ux#b(u=2', 0, 0),
  ],
)
def test_rewards_by_hand(response, outcome, form):
  found = ThoughtCalls().reward(EXAMPLE, response)
  assert found == {'outcome': outcome, 'format': form}


def test_the_teacher_recalls_and_is_right():
  """With slips the call has the parameter of the thought."""
  task, slips = ThoughtCalls(), ThoughtCalls(slips=1.0)
  assert task.target(EXAMPLE) == 'b:ux;a:w#b(u=2,x=1)a(w=3)'
  for index in range(30):
    example = task.example('train', index)
    target = task.target(example)
    assert set(example.prompt + target) <= set(task.alphabet)
    assert task.reward(example, target) == {'outcome': 1.0, 'format': 1.0}
    wrong = slips.target(example)
    assert slips.reward(example, wrong) == {'outcome': 0.0, 'format': 1.0}
    assert wrong == slips.target(example)


def test_without_decoys_prompts_are_those_of_function_calls():
  """E0; a decoy is a request in small letters, and changes no answer."""
  plain, decoys = ThoughtCalls(decoys=0.0), ThoughtCalls(decoys=1.0)
  for index in range(20):
    example = FunctionCalls().example('validation', index)
    assert plain.example('validation', index) == example
    found = decoys.example('validation', index)
    assert found.answer == example.answer
    decoy, _, rest = found.prompt.partition(';')
    assert decoy[0].islower() and rest == example.prompt


def test_the_thought_is_marked():
  """E0: up to the mark and with it, whatever the calls are."""
  task = ThoughtCalls()
  spans = TextSpans(
    task, think=('=', thought_calls.MARK), segments=(), opened=True
  )
  tokenizer = CharTokenizer(task.alphabet)
  texts = ['b:u#b(u=2)', 'b:u#b(u=1)']
  ids = np.array([tokenizer.encode(text) for text in texts])
  found = spans.row_inputs_device(ids, np.array([10, 10]), tokenizer)
  expected = [[1, 1, 1, 1, 0, 0, 0, 0, 0, 0]] * 2
  np.testing.assert_array_equal(found['think_mask_BT'], expected)
