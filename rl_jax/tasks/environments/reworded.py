"""Episodes whose every turn is a new message about the last few steps."""

from collections.abc import Sequence
import dataclasses
import string
from typing import Any, ClassVar

from rl_jax.checks import checked, ranged
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import Environment, Reply, is_environment
from rl_jax.tasks.wrapped import Wrapped

INVALID = 'invalid'  # component
ACTIONS = 'actions'  # in Reply.info: what may be done now
_FIELDS = frozenset(('step', 'history', 'observation', 'actions'))


@dataclasses.dataclass(frozen=True)
@checked
class Reworded(Wrapped):
  """A task of episodes that says before each turn what is known by then:

    Reworded(task=Sokoban(), turns=2, message='{history}Now:\\n{observation}')

  Before a turn the policy reads the prompt, which has the first observation,
  and one message; turns and messages before are not in its context.
  chat: whether prompt and messages are those of a user in a conversation; a
    task that is a conversation stays one.
  first: a template of what ends the prompt; {observation} is the first one and
    {actions} what may be done.
  message: a template; {step} is the number of steps so far, {history} a line
    for each of the last `turns` steps, see `line`, {observation} what the
    environment says, {actions} what may be done, if Reply.info has it.
  line: of a step in the history: {step}, {observation} before it, {action}.
  opening, closing: marks of the action in a turn, which the environment gets
    without them; a turn without both is its last `most` characters, and has
    the component `invalid` 1. '': the turn is the action.
  Source: verl-agent (GiGPO), where the first message is not read again and
  every turn is a row; here a row is an episode.

  Raises: ValueError for a template with other fields.
  """

  # What is read again is not what was said.
  not_passed: ClassVar[tuple[str, ...]] = (
    'begin_device',
    'step_device',
    'device_answers',
    'row_inputs_device',
  )

  task: Any
  turns: int = ranged(2, 0)
  message: str = (
    'Step {step}.\n{history}{observation}\nPossible actions: {actions}\n'
  )
  line: str = 'At step {step} you saw: {observation} You did: {action}\n'
  opening: str = '<action>'
  closing: str = '</action>'
  most: int = ranged(30, 1)
  chat: bool = False
  first: str = '{observation}'

  def __post_init__(self):
    super().__post_init__()
    name, traits = type(self.task).__name__, self.task.traits
    if not is_environment(self.task):
      raise ValueError(f'Reworded.task = {name} is not an environment')
    for wrong, what in (
      (traits.players > 1, 'has several players'),
      (traits.asks, 'asks partners'),
      (traits.rewrites, 'rewrites contexts itself'),
    ):
      if wrong:
        raise ValueError(f'Reworded.task = {name} {what}')
    for field, text, known in (
      ('message', self.message, _FIELDS),
      ('first', self.first, {'observation', 'actions'}),
      ('line', self.line, {'step', 'observation', 'action'}),
    ):
      unknown = _fields(text) - known
      if unknown:
        raise ValueError(
          f'Reworded.{field} = {text!r} has {sorted(unknown)}, but only '
          f'{sorted(known)} are known'
        )
    for field, text in (('message', self.message), ('first', self.first)):
      if '{observation}' not in text:
        raise ValueError(f'Reworded.{field} = {text!r} has no {{observation}}')
    if bool(self.opening) != bool(self.closing):
      raise ValueError(
        f'Reworded.opening = {self.opening!r} with closing = {self.closing!r}: '
        'give both marks or none'
      )

  @property
  def traits(self) -> TaskTraits:
    """The task's traits; contexts are rewritten."""
    own = super().traits
    return dataclasses.replace(own, rewrites=True, chat=self.chat or own.chat)

  def make(self, example: Example) -> 'Telling':
    """An episode that has not started."""
    return Telling(self, self.task.start(example))

  def action_in(self, turn: str) -> tuple[str, bool]:
    """(what the environment gets, whether the turn has an action)."""
    if not self.opening:
      return turn, True
    _, opened, after = turn.rpartition(self.opening)
    action, closed, _ = after.partition(self.closing)
    if opened and closed:
      return action.strip(), True
    return turn[-self.most :], False


class Telling(Environment):
  """One episode, and what has been seen and done."""

  def __init__(self, task: Reworded, environment: Environment):
    self._task, self._environment = task, environment
    self._seen: list[tuple[str, str]] = []  # (observation, action)
    self._observation = ''

  def reset(self, seed: int) -> Reply:
    """The task's, with what may be done."""
    reply = self._environment.reset(seed)
    self._observation = str(reply.observation)
    text = self._task.first.format(
      observation=self._observation, actions=', '.join(_actions(reply))
    )
    return dataclasses.replace(reply, observation=text)

  def step(self, action: str) -> Reply:
    """The task's reply, in the words of the message."""
    task = self._task
    given, valid = task.action_in(action)
    reply = self._environment.step(given)
    self._seen.append((self._observation, given))
    self._observation = str(reply.observation)
    rewards = {**reply.components, INVALID: float(not valid)}
    if reply.done or reply.truncated:
      return dataclasses.replace(reply, rewards=rewards)
    text = task.message.format(
      step=len(self._seen),
      history=self._history(),
      observation=self._observation.rstrip('\n'),
      actions=', '.join(_actions(reply)),
    )
    return dataclasses.replace(
      reply, observation=text, rewards=rewards, forget=True
    )

  def close(self) -> None:
    """Ends the task's episode."""
    self._environment.close()

  def _history(self):
    first = max(0, len(self._seen) - self._task.turns)
    return ''.join(
      self._task.line.format(
        step=first + n + 1, observation=seen.rstrip('\n'), action=done
      )
      for n, (seen, done) in enumerate(self._seen[first:])
    )


def _actions(reply: Reply) -> Sequence[str]:
  """Returns what may be done now."""
  return [str(one) for one in reply.info.get(ACTIONS, ())]


def _fields(text):
  """Names of the fields of a template."""
  return {name for _, name, _, _ in string.Formatter().parse(text) if name}
