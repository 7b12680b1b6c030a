"""Further sets of prompts that a run is evaluated on."""

from collections.abc import Mapping, Sequence
import dataclasses
import re
from typing import Any

from rl_jax.tasks import base
from rl_jax.tasks.base import Example
from rl_jax.tasks.environments import several
from rl_jax.tasks.environments.base import (
  Environment,
  is_environment,
  rewrites,
)

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

  @property
  def make(self) -> Any:
    """Episodes, if the run has them; else AttributeError."""
    if not is_environment(self.task):
      raise AttributeError('the task of the run has no method make')
    return self._make

  @property
  def chat(self) -> bool:
    """Of the run."""
    return getattr(self.task, 'chat', False)

  @property
  def role(self) -> str:
    """Of the run."""
    return getattr(self.task, 'role', 'user')

  @property
  def arguments(self) -> Mapping[str, Any]:
    """Of the run."""
    return getattr(self.task, 'arguments', {})

  @property
  def call_mark(self) -> str:
    """Of the run."""
    return getattr(self.task, 'call_mark', '')

  @property
  def rewrites(self) -> bool:
    """If any task does."""
    return any(map(rewrites, self._tasks()))

  @property
  def global_random(self) -> bool:
    """If any task has it."""
    return any(getattr(t, 'global_random', True) for t in self._tasks())

  @property
  def deterministic(self) -> bool:
    """If every task is."""
    return all(getattr(t, 'deterministic', True) for t in self._tasks())

  def weights_of(self, example: Example) -> dict[str, float]:
    """Of the example's own task."""
    return self.task_of(example).reward_weights

  def task_of(self, example: Example) -> Any:
    """That of the example's set, or of the run."""
    return self._task_of(example.meta.get(_SET))

  def prepare(self) -> None:
    """That of every task."""
    for task in self._tasks():
      if hasattr(task, 'prepare'):
        task.prepare()

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """As of the example's own task."""
    return self.task_of(example).reward(_unmarked(example), response)

  def _make(self, example: Example) -> Environment:
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
    if not (hasattr(one, 'name') and hasattr(one, 'split')):
      raise ValueError(f'evaluation.sets: {one!r} is no EvaluationSet')
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
