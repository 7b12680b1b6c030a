"""The prompts of a task that a file lists."""

import json

import pytest

from rl_jax.tasks import KeptPrompts
from rl_jax.worlds import Families

TASK = Families(num_train=30, num_validation=4)


def written(tmp_path, prompts):
  path = tmp_path / 'kept.jsonl'
  path.write_text(''.join(json.dumps({'prompt': x}) + '\n' for x in prompts))
  return str(path)


def prompts(task, split='train'):
  return [task.example(split, i).prompt for i in range(task.num_prompts(split))]


def test_by_hand(tmp_path):
  """In the order of the task, whatever that of the file; other splits stay."""
  own = prompts(TASK)
  task = KeptPrompts(TASK, written(tmp_path, [own[7], own[2], own[7]]))
  assert prompts(task) == [x for x in own if x in (own[2], own[7])]
  assert prompts(task, 'validation') == prompts(TASK, 'validation')


def test_all_prompts_are_the_task(tmp_path):
  """E0: prompts, targets and rewards."""
  task = KeptPrompts(TASK, written(tmp_path, prompts(TASK)))
  assert prompts(task) == prompts(TASK)
  for index in (0, 29):
    example, own = task.example('train', index), TASK.example('train', index)
    assert task.target(example) == TASK.target(own)
    for text in (own.answer, ''):
      assert task.reward(example, text) == TASK.reward(own, text)


@pytest.mark.parametrize(
  'listed, message',
  [
    (['x 1 2='], "1 of 1 prompts, as 'x 1 2='"),
    ([], '0 of 0 prompts'),
    ([3], 'has the prompt 3'),
  ],
)
def test_files_that_do_not_fit(tmp_path, listed, message):
  task = KeptPrompts(TASK, written(tmp_path, listed))
  with pytest.raises(ValueError, match=message):
    task.num_prompts('train')


def test_a_path_is_needed():
  with pytest.raises(ValueError, match='KeptPrompts.path'):
    KeptPrompts(TASK)
