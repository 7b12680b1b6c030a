"""Tasks from easy to hard, whose prompts alternate."""

import dataclasses
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base
from rl_jax.tasks.base import Example, Task, TaskTraits, merged
from rl_jax.tasks.environments.base import is_environment

_OWN_ID = 'own_id'  # in Example.meta: the index in the task of the level


@dataclasses.dataclass(frozen=True)
@checked
class Levels(Task):
  """Prompt i is prompt i // n of task i % n, the tasks counted from 0.

    Levels((Arithmetic(digits=1), Arithmetic(digits=2)), num_train=512)

  A selector reads the level of a prompt from its place
  (`pieces.selection.TargetDifficulty`). Every split has as many prompts of each
  task as the one with the fewest has, the train split at most num_train in all,
  so that they come back. Rewards are those of the task, whose weights must be
  those of the others; metrics are given by level, too. A judge may read some
  levels only (`Judge.parts`, 'level_0' and so on). Responses are one turn.
  Recorded responses, hints and device verifiers of the tasks are not passed on.
  """

  tasks: tuple[Any, ...]
  num_train: int | None = ranged(None, 1)  # None: all

  def __post_init__(self):
    if not self.tasks:
      raise ValueError('Levels.tasks = (): give at least one')
    for task in self.tasks:
      base.check_task(task)
      if is_environment(task):
        raise ValueError(
          f'Levels.tasks: {type(task).__name__} has episodes; responses of one '
          'turn are expected'
        )
    weights = [dict(task.reward_weights) for task in self.tasks]
    if any(one != weights[0] for one in weights):
      raise ValueError(
        f'Levels.tasks: reward_weights {weights} must be the same for all'
      )

  @property
  def reward_weights(self) -> dict[str, float]:
    """The weights that all tasks share."""
    return self.tasks[0].reward_weights

  @property
  def alphabet(self) -> str | None:
    """All letters, if every task has an alphabet; else None."""
    known = [task.alphabet for task in self.tasks]
    if None in known:
      return None
    return ''.join(sorted({c for letters in known for c in letters}))

  @property
  def traits(self) -> TaskTraits:
    """The traits of the tasks as one."""
    return merged([task.traits for task in self.tasks])

  @staticmethod
  def name(level: int) -> str:
    """The name of a level, for metrics and judges."""
    return f'level_{level}'

  def prepare(self) -> None:
    """Prepares every task."""
    for task in self.tasks:
      task.prepare()

  def num_prompts(self, split: str) -> int:
    """Equally many of every task."""
    count = len(self.tasks)
    total = count * min(task.num_prompts(split) for task in self.tasks)
    if split != 'train' or self.num_train is None:
      return total
    return min(total, self.num_train // count * count)

  def example(self, split: str, index: int) -> Example:
    """The example of the level, under its own index."""
    base.check_index(self, split, index)
    own, level = divmod(index, len(self.tasks))
    example = self.tasks[level].example(split, own)
    marks = {base.PART: self.name(level), _OWN_ID: own}
    return dataclasses.replace(
      example, id=index, meta={**example.meta, **marks}
    )

  def target(self, example: Example) -> str:
    """The target of the level."""
    task, inner = self._inner(example)
    return task.target(inner)

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The rewards of the level."""
    task, inner = self._inner(example)
    return task.reward(inner, response)

  def _inner(self, example):
    meta = dict(example.meta)
    own = meta.pop(_OWN_ID)
    del meta[base.PART]
    task = self.tasks[example.id % len(self.tasks)]
    return task, dataclasses.replace(example, id=own, meta=meta)
