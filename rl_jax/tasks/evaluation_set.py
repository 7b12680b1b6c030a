"""Further sets of prompts that a run is evaluated on."""

from collections.abc import Mapping, Sequence
import dataclasses
import re
from typing import Any

from rl_jax.tasks import base
from rl_jax.tasks.base import Example, Task, TaskTraits, merged
from rl_jax.tasks.environments import several
from rl_jax.tasks.environments.base import Environment, is_environment

_SET = 'evaluation_set'  # in Example.meta


@dataclasses.dataclass(frozen=True)
class EvaluationSet(Task):
  """A split of the run's task, or of its own task; metrics have its name.

  As a task it holds the prompts of `split` under every name of a split; its
  examples say which set they are of, see `Several`.
  """

  name: str
  split: str = 'test'
  task: Any = None  # None: that of the run

  def __post_init__(self):
    if not re.fullmatch(r'[\w.-]+', self.name):
      raise ValueError(
        f'EvaluationSet.name = {self.name!r}: only letters, digits and _ . -'
      )
    base.check_split(self.split)
    if self.task is not None:
      base.require(self.task, 'EvaluationSet.task')

  @property
  def traits(self) -> TaskTraits:
    return self.task.traits

  @property
  def reward_weights(self) -> Mapping[str, float]:
    return self.task.reward_weights

  def num_prompts(self, split: str) -> int:
    """The number of prompts in the split of the set."""
    del split
    return self.task.num_prompts(self.split)

  def example(self, split: str, index: int) -> Example:
    """The task's example, marked."""
    del split
    example = self.task.example(self.split, index)
    return dataclasses.replace(example, meta={**example.meta, _SET: self.name})

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """The task's, of an example that is marked."""
    return self.task.reward(_unmarked(example), response)


@dataclasses.dataclass(frozen=True)
class Several(Task):
  """Judges responses by the task of their set, or by that of the run."""

  task: Task
  sets: tuple[EvaluationSet, ...]

  @property
  def reward_weights(self) -> Mapping[str, float]:
    """The weights of the run."""
    return self.task.reward_weights

  @property
  def traits(self) -> TaskTraits:
    """The traits of all tasks as one; episodes have the form of the run's."""
    return merged([task.traits for task in self._tasks()], self.task.traits)

  def supports(self, name: str) -> bool:
    """Episodes, if the run has them."""
    return name == 'reward' or (name == 'make' and is_environment(self.task))

  def num_prompts(self, split: str) -> int:
    """The number of the run's prompts; sets have their own."""
    return self.task.num_prompts(split)

  def example(self, split: str, index: int) -> Example:
    """An example of the run; sets have their own."""
    return self.task.example(split, index)

  def weights_of(self, example: Example) -> Mapping[str, float]:
    """The weights of the example's own task."""
    return self.task_of(example).reward_weights

  def task_of(self, example: Example) -> Task:
    """The task of the example's set, or of the run."""
    return self._task_of(example.meta.get(_SET))

  def prepare(self) -> None:
    """Prepares every task."""
    for task in self._tasks():
      task.prepare()

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """The rewards by the example's own task."""
    return self.task_of(example).reward(_unmarked(example), response)

  def make(self, example: Example) -> Environment:
    """The environment of the example's own task."""
    return several.make(self.task_of(example), _unmarked(example))

  def _task_of(self, name):
    if name is None:
      return self.task
    return next(one.task for one in self.sets if one.name == name)

  def _tasks(self):
    return (self.task, *(one.task for one in self.sets))


def _unmarked(example):
  meta = {name: x for name, x in example.meta.items() if name != _SET}
  return dataclasses.replace(example, meta=meta)


def check_sets(
  sets: Sequence[EvaluationSet], split: str | None, consensus: Sequence[str]
) -> None:
  """Raises ValueError, naming the field of `evaluation`, if they do not fit.

  split: of the run's own task, or None. consensus: two names of sets, or more.
  """
  for one in sets:
    if not isinstance(one, EvaluationSet):
      raise ValueError(f'evaluation.sets: {one!r} is not an EvaluationSet')
  names = [one.name for one in sets]
  if len(set(names)) < len(names):
    raise ValueError(f'evaluation.sets: names occur twice: {names}')
  if split is None and not names:
    raise ValueError('evaluation.split = None, and evaluation.sets is empty')
  if consensus and (len(consensus) == 1 or not set(consensus) <= set(names)):
    raise ValueError(
      f'evaluation.consensus = {consensus}: two names at least, of '
      f'evaluation.sets: {names}'
    )


def judged(task: Any, sets: tuple[EvaluationSet, ...]) -> Any:
  """The task by which verifiers judge: `task` if no set has its own."""
  own = tuple(one for one in sets if one.task is not None)
  if is_environment(task):
    several.check([task, *(one.task for one in own)], 'evaluation.sets')
  return Several(task, own) if own else task
