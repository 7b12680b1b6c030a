"""Episodes of several tasks, which one pool of workers plays."""

import dataclasses
from typing import Any

from rl_jax.tasks.environments import several

NAME = 'adapter'  # in Example.meta


@dataclasses.dataclass(frozen=True)
class Adapters:
  """Tasks by name; an example's is in its meta."""

  tasks: dict[str, Any]

  def prepare(self):
    """All of them."""
    for task in self.tasks.values():
      getattr(task, 'prepare', lambda: None)()

  def example(self, name):
    """The first one of a task."""
    example = self.tasks[name].example('train', 0)
    meta = {**example.meta, NAME: name}
    return dataclasses.replace(example, meta=meta)

  def make(self, example):
    """Makes an episode of the example's task."""
    return several.make(self.tasks[example.meta[NAME]], example)
