"""Prompts with the mark of a reward."""

import pytest

from rl_jax.tasks import RewardIdentifiers
from rl_jax.worlds import Families

MARKS = {'outcome': 'O', 'places': 'P'}


def test_prompts_alternate_and_held_out_ones_have_all_marks():
  plain = Families(num_train=3)
  task = RewardIdentifiers(plain, marks=MARKS)
  assert task.num_prompts('train') == 6
  assert task.num_prompts('validation') == plain.num_prompts('validation')
  for index in range(6):
    example = task.example('train', index)
    before = plain.example('train', index // 2)
    assert example.prompt == 'OP'[index % 2] + before.prompt
    assert example.id == index
    assert task.target(example) == plain.target(before)
    assert task.recorded(example) == plain.recorded(before)
    found = task.reward(example, before.answer)
    assert found == {'outcome': 1.0, 'places': 1.0, 'identifier': index % 2}
    assert set(example.prompt) <= set(task.alphabet)
  held = task.example('validation', 1)
  assert held.prompt == 'OP' + plain.example('validation', 1).prompt
  assert task.reward(held, '')['identifier'] == -1.0


def test_one_mark_is_the_task_with_it():
  """The reduction."""
  plain = Families(num_train=3)
  task = RewardIdentifiers(plain, marks={'outcome': 'O'})
  assert [task.example('train', i).prompt for i in range(3)] == [
    'O' + plain.example('train', i).prompt for i in range(3)
  ]


@pytest.mark.parametrize('marks', [{}, {'outcome': ''}])
def test_bad_marks_are_named(marks):
  with pytest.raises(ValueError, match='RewardIdentifiers.marks'):
    RewardIdentifiers(Families(), marks=marks)
