"""Recorded groups of equivalent chains."""

from rl_jax.tasks.base import Example
from rl_jax.worlds import EquivalentChains


def test_group_by_hand():
  """Two right responses that mean the same, two wrong ones that do."""
  example = Example(prompt='ri 314=', answer='524', id=0)
  texts = [x.text for x in EquivalentChains().recorded(example)]
  assert texts[:2] == ['413;524>524', '413;524?524>524']
  wrong = texts[2].removeprefix('413;').partition('>')[0]
  assert texts[2:] == [f'413;{wrong}>{wrong}', f'413;{wrong}?{wrong}>{wrong}']
  assert sum(a != b for a, b in zip(wrong, '524', strict=True)) == 1


def test_rewards_are_those_of_the_task():
  task = EquivalentChains()
  assert task.num_recorded == len(task.recorded(task.example('train', 0)))
  for index in range(20):
    example = task.example('train', index)
    for one in task.recorded(example):
      assert task.reward(example, one.text)['outcome'] == one.reward
      assert set(one.text) <= set(task.alphabet)
