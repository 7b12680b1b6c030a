"""Tasks from easy to hard, whose prompts alternate."""

import pytest

from rl_jax.tasks import Levels, base
from rl_jax.tasks.base import TaskTraits
from rl_jax.worlds import Arithmetic, Bandit, KeyDoor

TASK = Levels(tuple(Arithmetic(digits=n) for n in (1, 2)), num_train=9)


def test_prompts_alternate_by_hand():
  """Prompt i is prompt i // 2 of task i % 2, under its own index."""
  assert TASK.num_prompts('train') == 8
  for index in range(8):
    example = TASK.example('train', index)
    own = TASK.tasks[index % 2].example('train', index // 2)
    assert (example.id, example.prompt) == (index, own.prompt)
    assert example.meta[base.PART] == f'level_{index % 2}'


def test_splits_have_as_many_of_every_task():
  """The 45 pairs of digits give 4 problems to the test split."""
  few = Arithmetic(digits=1).num_prompts('test')
  assert few == 4
  assert TASK.num_prompts('test') == 2 * few
  whole = Levels(TASK.tasks)
  assert whole.num_prompts('train') == 2 * Arithmetic(digits=1).num_prompts(
    'train'
  )


def test_responses_are_judged_by_their_level():
  for index in range(8):
    example = TASK.example('train', index)
    assert TASK.target(example) == example.answer
    assert TASK.reward(example, example.answer) == {'outcome': 1.0}
    assert TASK.reward(example, example.answer + '0') == {'outcome': 0.0}


def test_letters_are_those_of_all_tasks():
  assert TASK.alphabet == ''.join(sorted(Arithmetic.alphabet))


def test_limits_of_rewards_are_those_of_the_tasks():
  """Else a slow or unsafe reward would be computed without a time limit."""
  prepared = []

  class Slow(Arithmetic):
    """Sums whose reward may not end."""

    traits = TaskTraits(needs_workers=True, reward_seconds=3.0)

    def prepare(self):
      """Is called once."""
      prepared.append(self.digits)

  assert TASK.traits == TaskTraits()
  one = Levels((Arithmetic(digits=1), Slow(digits=2)))
  assert one.traits.needs_workers and one.traits.reward_seconds == 3.0
  one.prepare()
  assert prepared == [2]


@pytest.mark.parametrize(
  ('tasks', 'message'),
  [
    ((), r'Levels.tasks = \(\): give at least one'),
    ((Arithmetic(), KeyDoor()), 'KeyDoor has episodes'),
    (
      (Arithmetic(), Arithmetic(reward_weights={'outcome': 2.0})),
      'must be the same for all',
    ),
    ((Bandit(), 'sums'), "= 'sums' is not a task: str does not derive"),
  ],
)
def test_what_is_no_task_of_levels_is_refused(tasks, message):
  with pytest.raises(ValueError, match=message):
    Levels(tasks)
