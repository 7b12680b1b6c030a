"""Episodes of which the policy remembers the last turns, or no thoughts."""

import dataclasses
from typing import Any, ClassVar

from rl_jax.checks import checked, ranged
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import (
  Environment,
  Reply,
  is_environment,
)
from rl_jax.tasks.wrapped import Wrapped


@dataclasses.dataclass(frozen=True)
@checked
class MemoryWindow(Wrapped):
  """A task of episodes whose context is rewritten turn by turn:

    MemoryWindow(task=KeyDoor(), turns=2)
    MemoryWindow(task=WithTools(...), turns=None, thoughts_end='</think>')

  Before turn k the policy reads the prompt, and after it
    o_i a_i of the turns i = k - turns, ..., k - 1, and o_k
  for observations o and actions a, token by token as they were; all that came
  before is forgotten. The prompt has the first observation. As long as nothing
  is left out, the context is what was said and done, as without the window.
  turns: how many are read again; None: all. thoughts_end: of an action that has
  it only what follows the last one is read again, as chat templates of
  models with thoughts do; '': the whole action.
  What is read again is not an action: it is not trained a second time. Every
  action is trained in the context in which it was drawn; a row is a whole
  episode.
  Source: the memory of verl-agent (GiGPO), which makes every turn its own row;
  rows that are episodes weigh as many, whatever their number of turns.
  """

  # Contexts are rewritten on the host, and what tokens are part of is read
  # from rows in which nothing is repeated.
  not_passed: ClassVar[tuple[str, ...]] = (
    'begin_device',
    'step_device',
    'device_answers',
    'row_inputs_device',
  )

  task: Any
  turns: int | None = ranged(2, 1)
  thoughts_end: str = ''

  def __post_init__(self):
    super().__post_init__()
    name, traits = type(self.task).__name__, self.task.traits
    if not is_environment(self.task):
      raise ValueError(
        f'MemoryWindow.task = {name} is not an environment (it has no '
        'method make)'
      )
    for wrong, what in (
      (traits.players > 1, 'has several players'),
      (traits.asks, 'asks partners'),
      (traits.rewrites, 'rewrites contexts itself'),
    ):
      if wrong:
        raise ValueError(f'MemoryWindow.task = {name} {what}')
    if self.turns is None and not self.thoughts_end:
      raise ValueError(
        "MemoryWindow.turns = None with thoughts_end = '' forgets nothing: "
        'give one of them'
      )

  @property
  def traits(self) -> TaskTraits:
    """The task's traits, which itself rewrites nothing."""
    return dataclasses.replace(
      super().traits, rewrites=True, stateless=False, pure=False
    )

  def make(self, example: Example) -> 'Remembering':
    """An episode that has not started."""
    return Remembering(self, self.task.start(example))


class Remembering(Environment):
  """One episode, and what is read again of its actions."""

  def __init__(self, task: MemoryWindow, environment: Environment):
    self._task, self._environment = task, environment
    self._again: list[str | None] = []  # texts in place of actions
    self._forgets = False

  def reset(self, seed: int) -> Reply:
    """The task's."""
    return self._environment.reset(seed)

  def step(self, action: str) -> Reply:
    """The task's reply, after what is remembered."""
    reply, task = self._environment.step(action), self._task
    thought = bool(task.thoughts_end) and task.thoughts_end in action
    text = action.rpartition(task.thoughts_end)[2] if thought else None
    self._again.append(text)
    count = len(self._again)
    first = 0 if task.turns is None else max(0, count - task.turns)
    self._forgets = self._forgets or thought or first > 0
    if not self._forgets or reply.done or reply.truncated:
      return reply
    history = tuple((n, self._again[n]) for n in range(first, count))
    return dataclasses.replace(reply, forget=True, history=history)

  def close(self) -> None:
    """Ends the task's episode."""
    self._environment.close()
