"""Further sets of prompts that a run is evaluated on."""

from collections.abc import Mapping
import dataclasses
import re
from typing import Any

from rl_jax.tasks import base
from rl_jax.tasks.base import Example

_SET = 'evaluation_set'  # in Example.meta


@dataclasses.dataclass(frozen=True)
class EvaluationSet:
  """A split of the run's task, or of a task of its own; metrics have its name.

  As a task it holds the prompts of `split` under every name of a split; its
  examples say which set they are of, see `Several`.
  """

  name: str
  split: str = 'test'
  task: Any = None  # None: that of the run

  def __post_init__(self):
    if not re.fullmatch(r'[\w.-]+', self.name):
      raise ValueError(
        f'EvaluationSet.name = {self.name!r}: letters, digits and _ . - alone'
      )
    base.check_split(self.split)
    if self.task is not None and not hasattr(self.task, 'num_prompts'):
      raise ValueError(f'EvaluationSet.task = {self.task!r} is no task')

  @property
  def reward_weights(self) -> dict[str, float]:
    """Of its task."""
    return self.task.reward_weights

  def num_prompts(self, split: str) -> int:
    """Of the split of the set."""
    del split
    return self.task.num_prompts(self.split)

  def example(self, split: str, index: int) -> Example:
    """The task's example, marked."""
    del split
    example = self.task.example(self.split, index)
    return dataclasses.replace(example, meta={**example.meta, _SET: self.name})


@dataclasses.dataclass(frozen=True)
class Several:
  """Judges responses by the task of their set, or by that of the run."""

  task: Any
  sets: tuple[EvaluationSet, ...]

  @property
  def reward_weights(self) -> dict[str, float]:
    """Of the run."""
    return self.task.reward_weights

  @property
  def needs_workers(self) -> bool:
    """If any task does."""
    return any(getattr(t, 'needs_workers', False) for t in self._tasks())

  @property
  def reward_seconds(self) -> float:
    """Of the slowest task."""
    return max(getattr(t, 'reward_seconds', 0.0) for t in self._tasks())

  def weights_of(self, example: Example) -> dict[str, float]:
    """Of the example's own task."""
    return self._task_of(example.meta.get(_SET)).reward_weights

  def prepare(self) -> None:
    """That of every task."""
    for task in self._tasks():
      if hasattr(task, 'prepare'):
        task.prepare()

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """As of the example's own task."""
    meta = dict(example.meta)
    task = self._task_of(meta.pop(_SET, None))
    return task.reward(dataclasses.replace(example, meta=meta), response)

  def _task_of(self, name):
    if name is None:
      return self.task
    return next(one.task for one in self.sets if one.name == name)

  def _tasks(self):
    return (self.task, *(one.task for one in self.sets))


def judged(task: Any, sets: tuple[EvaluationSet, ...]) -> Any:
  """The task by which verifiers judge: `task` if no set has its own."""
  own = tuple(one for one in sets if one.task is not None)
  return Several(task, own) if own else task
