"""Episodes of several tasks, of which some may have single responses."""

from collections.abc import Sequence
import dataclasses

from rl_jax.tasks.base import Example, Task
from rl_jax.tasks.environments.base import (
  Environment,
  Reply,
  is_environment,
)


def check(tasks: Sequence[Task], where: str) -> bool:
  """Returns whether any of the tasks has episodes.

  Raises: ValueError if two that have write their turns differently.
  """
  own = [task for task in tasks if is_environment(task)]
  forms = {
    (x.traits.chat, x.traits.role, _variables(x.traits)): type(x).__name__
    for x in own
  }
  if len(forms) > 1:
    raise ValueError(
      f'{where}: all episodes must have one form (chat, role of observations, '
      f'variables of the chat template but for tools), got {forms}'
    )
  if len(tasks) > 1 and any(x.traits.players > 1 for x in tasks):
    raise ValueError(
      f'{where}: a game of several players cannot be one of several tasks'
    )
  return bool(own)


def _variables(traits):
  own = traits.arguments if traits.chat else {}
  return repr(sorted((k, v) for k, v in own.items() if k != 'tools'))


def make(task: Task, example: Example) -> Environment:
  """The task's episode; of a task without any its response as one step."""
  return task.start(example) if is_environment(task) else Once(task, example)


def begins_in_chat(task: Task, example: Example) -> bool:
  """Returns whether the first observation is a message."""
  if example.messages:
    return True
  inner = task.task_of(example)
  while inner is not task:  # a mixture may be one of several sets
    task, inner = inner, inner.task_of(example)
  return is_environment(task) and task.traits.chat


@dataclasses.dataclass(frozen=True)
class Once(Environment):
  """An episode of one turn, the response to the example's prompt."""

  task: Task
  example: Example

  def reset(self, seed: int) -> Reply:
    """Nothing is said: the prompt is the example's own."""
    del seed
    return Reply()

  def step(self, action: str) -> Reply:
    """The end, with the reward of the response."""
    return Reply(rewards=self.task.reward(self.example, action), done=True)


@dataclasses.dataclass(frozen=True)
class Weighted(Environment):
  """An environment whose rewards have their weighted sum, named `name`."""

  inner: Environment
  weights: dict[str, float]
  name: str

  def reset(self, seed: int) -> Reply:
    return self.inner.reset(seed)

  def step(self, action: str) -> Reply:
    """Components that a step does not name are 0."""
    reply = self.inner.step(action)
    terms = (w * reply.components.get(k, 0.0) for k, w in self.weights.items())
    rewards = {**reply.components, self.name: sum(terms)}
    return dataclasses.replace(reply, rewards=rewards)

  def expect(self, actions: tuple[str, ...]) -> None:
    self.inner.expect(actions)

  def continue_after(self, actions: tuple[str, ...]) -> None:
    self.inner.continue_after(actions)

  def close(self) -> None:
    self.inner.close()
