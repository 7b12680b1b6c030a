"""Episodes of several tasks, which one pool of workers plays."""

import dataclasses
from typing import Any

from rl_jax.tasks.environments import several
from rl_jax.tasks.environments.base import Episodic

NAME = 'adapter'  # in Example.meta


@dataclasses.dataclass(frozen=True)
class Adapters(Episodic):
  """Tasks by name; an example's is in its meta."""

  tasks: dict[str, Any]

  def prepare(self):
    """All of them."""
    for task in self.tasks.values():
      task.prepare()

  def num_prompts(self, split):
    """One of every task."""
    return len(self.tasks)

  def example(self, split, index):
    """The first one of a task."""
    return self.first(list(self.tasks)[index])

  def first(self, name):
    """Returns the first example of the task of that name."""
    example = self.tasks[name].example('train', 0)
    meta = {**example.meta, NAME: name}
    return dataclasses.replace(example, meta=meta)

  def make(self, example):
    """Makes an episode of the example's task."""
    return several.make(self.tasks[example.meta[NAME]], example)
