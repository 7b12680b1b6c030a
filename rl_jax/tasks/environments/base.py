"""Tasks with episodes, and examples whose first observation is known.

Nothing here imports JAX: environments live in worker processes.
"""

import abc
from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any, ClassVar

from rl_jax import checks
from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example
from rl_jax.tasks.episodes import Ask as Ask
from rl_jax.tasks.episodes import AsyncEnvironment as AsyncEnvironment
from rl_jax.tasks.episodes import DeviceReply as DeviceReply
from rl_jax.tasks.episodes import Environment as Environment
from rl_jax.tasks.episodes import Reply as Reply

SEED = 'seed'  # in Example.meta


class Episodic(base.Task, is_base=True):
  """Base of a task whose responses are episodes: a subclass writes `make`."""

  @abc.abstractmethod
  def make(self, example: Example) -> Environment:
    """An episode that has not started."""

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """Replies have the rewards; a single response has none."""
    raise self._lacks('reward')


@dataclasses.dataclass(frozen=True)
@checked
class EnvironmentTask(Episodic, is_base=True):
  """A task whose prompts are the first observations of episodes.

  A subclass writes `make`. The prompt is `instructions` followed by what
  `reset` says; in chat form (the trait `chat`) the first is the system's
  message and observations have the trait `role`; `arguments` are variables of
  the model's template, such as enable_thinking. `example` may give data to
  `make`. For scanned runs there are `device_answers`, `begin_device` and
  `step_device`.
  A game has the trait `players` > 1: each example is played from the place of
  every player, by its own group, and players hear each other as observations.
  """

  num_train: int = ranged(1000, 1)
  num_held_out: int = ranged(100, 1)  # of validation and test each
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()
  instructions: ClassVar[str] = ''

  def num_prompts(self, split: str) -> int:
    """Initial states of a split."""
    base.check_split(split)
    return self.num_train if split == 'train' else self.num_held_out

  def example(self, split: str, index: int) -> Example:
    """An initial state: its seed is a function of task, split and index."""
    base.check_index(self, split, index)
    words = (type(self).__name__, self.seed, split, index)
    return Example(
      prompt=self.instructions,
      answer='',
      id=index,
      meta={SEED: draws.stable_hash(*words) % (1 << 31)},
      arguments=dict(self.traits.arguments),
    )


def is_environment(task: base.Task) -> bool:
  """Returns whether the task has episodes, not single responses."""
  return task.supports('make')


def seed_of(example: Example) -> int:
  """The seed of an example's episodes."""
  return int(example.meta.get(SEED, example.id))


@dataclasses.dataclass(frozen=True)
class Opened(Example):
  """The example `origin` whose prompt ends with the first observation.

  role: the player whose prompt it is; its id is `players * id + role`.
  acting: the player whose turn is the first.
  others: the same of the other players, in order, if this is the first.
  failure: kind and detail if its episodes do not begin; the prompt then lacks
  the observation.
  """

  origin: Example | None = None
  observation: str = ''
  role: int = 0
  acting: int = 0
  failure: tuple[str, str] | None = None
  others: tuple['Opened', ...] = ()


def opened(
  example: Example,
  observation: str | Sequence[str],
  chat: bool,
  acting: int = 0,
) -> Opened:
  """The example with the first observation of its episodes, chat: a message.

  observation: of a game, by player; then the first player's example. acting:
  the player whose turn is the first.
  """
  if isinstance(observation, str):
    return _opened(example, observation, chat, 0, 1)
  count = len(observation)
  first, *others = (
    dataclasses.replace(
      _opened(example, text, chat, role, count), acting=acting
    )
    for role, text in enumerate(observation)
  )
  return dataclasses.replace(first, others=tuple(others))


def _opened(example, observation, chat, role, count):
  """Returns what one of `count` players reads."""
  fields: dict[str, Any] = checks.values(example)
  fields |= {'origin': example, 'observation': observation, 'role': role}
  fields['id'] = count * example.id + role
  if not chat:
    parts = example.parts or (example.prompt, '')
    if len(parts) % 2:
      parts = (*parts, '')
    parts = (*parts[:-1], parts[-1] + observation)
    fields |= {'prompt': ''.join(parts), 'parts': parts}
    return Opened(**fields)
  messages = example.messages
  if not messages and example.prompt:
    messages = ({'role': 'system', 'content': example.prompt},)
  if observation:
    messages = (*messages, {'role': 'user', 'content': observation})
  prompt = example.prompt + observation
  fields |= {'prompt': prompt, 'messages': messages, 'parts': ()}
  return Opened(**fields)
