"""Episodes of which the policy remembers the last turns, or no thoughts."""

import dataclasses
from typing import Any, ClassVar

from rl_jax.checks import checked, ranged
from rl_jax.tasks.base import Example
from rl_jax.tasks.environments.base import (
  Environment,
  Reply,
  asked_by,
  is_environment,
  players_of,
  rewrites,
)


@dataclasses.dataclass(frozen=True)
@checked
class MemoryWindow:
  """A task of episodes whose context is rewritten turn by turn:

    MemoryWindow(task=KeyDoor(), turns=2)
    MemoryWindow(task=WithTools(...), turns=None, thoughts_end='</think>')

  Before turn k the policy reads the prompt o_0, and behind it
    o_i a_i of the turns i = k - turns, ..., k - 1, and o_k
  for observations o and actions a, o_0 not twice; all that came before is
  forgotten. As long as nothing is left out, the context is what was said and
  done, as it is without the window.
  turns: how many are repeated; None: all. thoughts_end: of an action that has
    it only what stands behind the last one is repeated, as chat templates of
    models with thoughts do; '': the whole action. between: text behind a
    repeated action, for the token that ended it.
  What is repeated is an observation: it is not trained again. In chat form it
  is part of the user's message, behind an empty turn. Every action is trained
  in the context in which it was drawn; a row is still a whole episode.
  Source: the memory of verl-agent (GiGPO), which makes every turn a row of its
  own; rows that are episodes weigh as many, whatever their number of turns.
  """

  task: Any
  turns: int | None = ranged(2, 1)
  thoughts_end: str = ''
  between: str = '\n'
  rewrites: ClassVar[bool] = True

  def __post_init__(self):
    name = type(self.task).__name__
    if not is_environment(self.task):
      raise ValueError(
        f'MemoryWindow.task = {name} is no environment (it has no method make)'
      )
    for wrong, what in (
      (players_of(self.task) > 1, 'has several players'),
      (asked_by(self.task), 'asks partners'),
      (rewrites(self.task), 'rewrites contexts itself'),
    ):
      if wrong:
        raise ValueError(f'MemoryWindow.task = {name} {what}')
    if self.turns is None and not self.thoughts_end:
      raise ValueError(
        "MemoryWindow.turns = None with thoughts_end = '' forgets nothing: "
        'give one of them'
      )

  def __getattr__(self, name: str) -> Any:
    """What is not here is the task's: prompts, rewards, templates."""
    if name.startswith('__') or name == 'task':
      raise AttributeError(name)
    if name in ('begin_device', 'step_device', 'device_answers'):
      raise AttributeError(name)  # contexts are rewritten on the host
    return getattr(self.task, name)

  @property
  def alphabet(self) -> str:
    """Of the task, and what is put between turns."""
    own = self.task.alphabet
    return own + ''.join(sorted(set(self.between) - set(own)))

  def make(self, example: Example) -> 'Remembering':
    """An episode that has not begun."""
    return Remembering(self, self.task.make(example))


class Remembering:
  """One episode, and what has been said and done in it."""

  def __init__(self, task: MemoryWindow, environment: Environment):
    self._task, self._environment = task, environment
    self._said: list[str] = []
    self._done: list[str] = []  # as it is repeated
    self._forgets = False

  def reset(self, seed: int) -> Reply:
    """The task's."""
    reply = self._environment.reset(seed)
    self._said.append(reply.observation)
    return reply

  def step(self, action: str) -> Reply:
    """The task's reply, behind what is remembered."""
    reply = self._environment.step(action)
    self._said.append(reply.observation)
    self._done.append(self._repeated(action))
    task, count = self._task, len(self._done)
    first = 0 if task.turns is None else max(0, count - task.turns)
    self._forgets = first > 0 or self._forgets or self._done[-1] != action
    if not self._forgets or reply.done or reply.truncated:
      return reply
    texts = [
      (self._said[n] if n else '') + self._done[n] + task.between
      for n in range(first, count)
    ]
    observation = ''.join(texts) + reply.observation
    return dataclasses.replace(reply, observation=observation, forget=True)

  def close(self) -> None:
    """Ends the task's episode, if it has an end."""
    if hasattr(self._environment, 'close'):
      self._environment.close()

  def _repeated(self, action: str) -> str:
    end = self._task.thoughts_end
    return action.rpartition(end)[2] if end else action
