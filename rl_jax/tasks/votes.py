"""Tasks whose answers can be counted: votes are of answers, not of texts."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from rl_jax.tasks import answers, base, wrapped
from rl_jax.tasks.base import Example
from rl_jax.tasks.countdown import Countdown
from rl_jax.tasks.mixture import Mixture
from rl_jax.tasks.python_function import PythonFunction

CLUSTER = 'cluster_id'


@dataclasses.dataclass(frozen=True)
class Counted(wrapped.Wrapped):
  """The task, with the component `cluster_id`: equal for equal answers.

  extract: where a response has its answer, a mode of `answers.extract`. Answers
  are equal if they are the same text, or both right; -1 without one.
  """

  not_passed = ('reward_device', 'device_answers')

  task: Any
  extract: str = 'whole'

  @property
  def traits(self) -> base.TaskTraits:
    """The task's traits; rewards have `cluster_id`."""
    return dataclasses.replace(super().traits, clusters=True)

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """The components of the task and the number of the answer."""
    components = self.task.reward(example, response)
    found = answers.extract(example.prefill + response, self.extract)
    if found is not None and components[base.OUTCOME] >= 1.0:
      found = example.answer
    return {CLUSTER: answers.cluster_id(found), **components}


def counted(task: Any, setting: str) -> Any:
  """The task with a cluster_id where its answers are parts of responses.

  A task whose answers are whole responses stays as it is. setting: what asks
  for it, for the error.

  Raises: ValueError for answers that cannot be compared.
  """
  if not dataclasses.is_dataclass(task):
    return task
  names = {field.name for field in dataclasses.fields(task)}
  if 'clusters' in names:
    return dataclasses.replace(task, clusters=True)
  if isinstance(task, Mixture):
    return _counted_parts(task, setting)
  if 'task' in names:
    inner = counted(task.task, setting)
    same = inner is task.task
    return task if same else dataclasses.replace(task, task=inner)
  if isinstance(task, PythonFunction):
    raise ValueError(
      f'{setting}: {type(task).__name__} is answered by programs, which cannot '
      'be compared; leave this setting out'
    )
  if isinstance(task, Countdown) and task.grammar == 'full':
    return Counted(task, 'answer_tags')
  return Counted(task, task.extract) if 'extract' in names else task


def _counted_parts(mixture, setting):
  """The mixture with cluster ids in all parts, if one has them."""
  tasks = [counted(part.task, setting) for part in mixture.parts]
  if tasks == [part.task for part in mixture.parts]:
    return mixture
  parts = [
    dataclasses.replace(part, task=Counted(task) if task is part.task else task)
    for task, part in zip(tasks, mixture.parts, strict=True)
  ]
  return dataclasses.replace(mixture, parts=tuple(parts))
