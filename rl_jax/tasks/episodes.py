"""Environments: episodes in which text answers text.

An episode is a function of (example, seed, actions): so a lost one is found
again by repeating its actions, and a run that continues has the same episodes.
Nothing here imports JAX: environments live in worker processes.
"""

import abc
from collections.abc import Hashable, Mapping
import dataclasses
from typing import Any, NamedTuple

from rl_jax import checks

CALL = 'policy.call'  # in place of a partner: the text is the answer already


@dataclasses.dataclass(frozen=True)
class Ask:
  """A question to a frozen model, in place of a turn of the policy.

  partner: its name in the configuration's `partners`, which the task has in
  `asks`. text: the question. candidates: () asks for a greedy answer in text;
  else the answer is a JSON list, the log-prob of each candidate after the
  question: the sum over its tokens, without an end token, to four decimals.
  The next call of the environment is `step` with the answer. With the partner
  CALL the text is the answer itself, of a call that the environment has made:
  it is written down and comes back, and whoever repeats the episode knows it.
  """

  partner: str
  text: str
  candidates: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Reply:
  """The reply of an environment to `reset` or a step.

  observation: text that the policy reads next, all of it new. In a game a tuple
    of what each player has heard since the reply before; what `reset` says ends
    the player's prompt, the rest opens its next turn.
  rewards: components of this step; their sums are those of the episode. In a
    game a tuple, by player.
  acting: the player whose turn is next.
  done: the episode has ended. truncated: it was cut (its reward counts).
  state: what tells apart the situations that the policy faces now, for methods
    that compare equal states of a group; None: unknown.
  action: the action as it was understood; None: as the text says.
  calls: tool calls made by this action.
  duration: how long it took, in units of the environment: a part of what an
    episode says again when it is repeated, so no measured time.
  info: small JSON, which is logged.
  forget: all that was said and done since the prompt leaves the policy's
    context; after the prompt it reads `history` and the observation, which are
    not both empty. For tasks with `rewrites`.
  history: turns that it reads again, in order: (number from 0, None), or with a
    text in place of the action. Their tokens are those of the turns and of the
    observations that opened them; turn 0 has the prompt's.
  ask: what a frozen model is asked before the policy's next turn. What has been
    said and rewarded until then counts as said and rewarded at once; state is
    that of the last reply, action, calls and duration those of the first. What
    `reset` and the answers to it say begins the prompt, and rewards nothing.
  """

  observation: str | tuple[str, ...] = ''
  rewards: Mapping[str, float] | tuple[Mapping[str, float], ...] = (
    dataclasses.field(default_factory=dict)
  )
  acting: int = 0
  done: bool = False
  truncated: bool = False
  state: Hashable = None
  action: str | None = None
  calls: int = 0
  duration: float = 1.0
  info: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  ask: Ask | None = None
  forget: bool = False
  history: tuple[tuple[int, str | None], ...] = ()

  @property
  def components(self) -> Mapping[str, float]:
    """The rewards of an environment with one player.

    Raises: TypeError for those of a game.
    """
    if isinstance(self.rewards, tuple):
      raise TypeError(f'the rewards of a game are by player: {self.rewards}')
    return self.rewards


class DeviceReply(NamedTuple):
  """The observations of all rows on the device: arrays in place of a Reply.

  ids: int32 tokens of the observation, as the tokenizer encodes it by itself,
    of which a row has `length`. rewards: components f32[B]. done: bool. state,
  action: int32, equal if and only if those of Reply are; -1: unknown.
  calls: int32, None for 0. duration: float32, None for 1.
  """

  ids_BO: Any
  length_B: Any
  rewards: dict[str, Any]
  done_B: Any
  state_B: Any
  action_B: Any
  calls_B: Any = None
  duration_B: Any = None


class Environment(abc.ABC):
  """Base of an episode; a subclass writes `reset` and `step`.

  A public name that is almost one of these is an error when the class is
  defined.
  """

  def __init_subclass__(cls, **more: Any) -> None:
    super().__init_subclass__(**more)
    for name in checks.own_names(cls):
      if meant := checks.misspelt(name, _MEMBERS):
        raise TypeError(
          f'{checks.where(cls)}: an Environment has no {name!r}; did you mean '
          f'{meant!r}? What only this class uses begins with an underscore: '
          f'_{name}'
        )

  @abc.abstractmethod
  def reset(self, seed: int) -> Reply:
    """Begins; the same seed has the same first observation, always."""

  @abc.abstractmethod
  def step(self, action: str) -> Reply:
    """Answers an action: the text of a turn, without the token that ends it.

    After a reply that asks a partner: its answer.
    """

  def expect(self, actions: tuple[str, ...]) -> None:  # noqa: B027
    """Knows what is going to be done from `reset` on, in this order.

    Of an episode that is repeated; answers of CALL are not asked for again.
    """

  def continue_after(self, actions: tuple[str, ...]) -> None:  # noqa: B027
    """Begins after these actions, which are not made again.

    In place of `reset`, for tasks with the trait `stateless`.
    """

  def close(self) -> None:  # noqa: B027, most have nothing to end
    """Ends the episode, as a process or a file may need it."""

  @property
  def commands(self) -> tuple[str, ...] | None:
    """The actions that can be given now; None: the episode does not say."""
    return None

  @property
  def solution(self) -> tuple[str, ...] | None:
    """Actions that solve the episode from here, or the first of them.

    () if there are none, None if the episode does not say.
    """
    return None


_MEMBERS = tuple(checks.own_names(Environment))


class AsyncEnvironment(abc.ABC):
  """Base of an episode whose `reset` and `step` are `async def`.

  With the traits workers = 'asyncio' and global_random = False thousands of
  them wait in one process. They draw from their own generators and never block
  the event loop that they share.
  """

  @abc.abstractmethod
  async def reset(self, seed: int) -> Reply:
    """Begins; the same seed has the same first observation, always."""

  @abc.abstractmethod
  async def step(self, action: str) -> Reply:
    """Answers an action; it is cancelled at the time limit."""

  def expect(self, actions: tuple[str, ...]) -> None:  # noqa: B027
    """Knows what is going to be done, see Environment."""

  def continue_after(self, actions: tuple[str, ...]) -> None:  # noqa: B027
    """Begins after these actions, see Environment."""

  async def close(self) -> None:  # noqa: B027, most have nothing to end
    """Ends the episode."""
