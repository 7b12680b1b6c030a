"""What an environment is: an episode in which text answers text.

An episode is a function of (example, seed, actions): so a lost one is found
again by repeating its actions, and a run that continues has the same episodes.
Nothing here imports JAX: environments live in worker processes.
"""

from collections.abc import Hashable, Mapping, Sequence
import dataclasses
from typing import Any, ClassVar, NamedTuple, Protocol

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example

SEED = 'seed'  # in Example.meta


@dataclasses.dataclass(frozen=True)
class Ask:
  """What a frozen model is asked, in place of a turn of the policy.

  partner: its name in the configuration's `partners`, which the task has in
  `asks`. text: the question. candidates: () asks for a greedy answer in text;
  else the answer is a JSON list, the log-prob of each candidate behind the
  question: the sum over its tokens, without an end token, to four decimals.
  The next call of the environment is `step` with the answer.
  """

  partner: str
  text: str
  candidates: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Reply:
  """What an environment says after `reset` or a step.

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
    context; behind the prompt it reads `history` and the observation, which are
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
  """What all rows are told on the device: arrays in place of a Reply.

  ids: int32 tokens of the observation, as the tokenizer encodes it alone, of
  which a row has `length`. rewards: components f32[B]. done: bool. state,
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


class Environment(Protocol):
  """One episode; a method `close()` is called at its end if there is one."""

  def reset(self, seed: int) -> Reply:
    """Begins; the same seed has the same first observation, always."""

  def step(self, action: str) -> Reply:
    """Answers an action: the text of a turn, without the token that ends it.

    After a reply that asks a partner: its answer.
    """


@dataclasses.dataclass(frozen=True)
@checked
class EnvironmentTask:
  """A task whose prompts are the first observations of episodes.

  A subclass writes `make`. The prompt is `instructions` followed by what
  `reset` says; in chat form (`chat`) the first is the system's message and
  observations have the role `role`; `arguments` are variables of the model's
  template, such as enable_thinking. `example` may give data to `make`.
  Optional: `prepare()` imports what episodes need, before workers are forked.
  For scanned runs: `device_answers(examples, tokenizer) -> (i32[N, A], i32[N])`
  as of any task, `begin_device(answer_BA) -> (state, state_B)` after `reset`,
  and `step_device(state, action_BA, length_B, tokenizer) -> (state,
  DeviceReply)`, jittable and on every row alone; a turn's tokens are the first
  `length` of action_BA.
  A game has `players` > 1: each example is played from the place of every
  player, by a group of its own, and players hear each other as observations.
  """

  num_train: int = ranged(1000, 1)
  num_held_out: int = ranged(100, 1)  # of validation and test each
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()
  instructions: ClassVar[str] = ''
  chat: ClassVar[bool] = False
  role: ClassVar[str] = 'user'
  arguments: ClassVar[Mapping[str, Any]] = {}
  players: ClassVar[int] = 1
  asks: ClassVar[tuple[str, ...]] = ()  # names of partners, see Ask
  rewrites: ClassVar[bool] = False  # whether replies may `forget`
  # False if episodes draw from generators of their own alone: several may then
  # share a process without an exchange of the states of the global ones.
  global_random: ClassVar[bool] = True
  # False if the same actions may be answered in another way, as by a tool of
  # the network. An episode is then never repeated: it is lost, and counted as a
  # mismatch, with its process and in a run that continues within it; methods
  # that repeat episodes are refused. `reset` must depend on its seed alone.
  deterministic: ClassVar[bool] = True

  def make(self, example: Example) -> Environment:
    """An episode that has not begun."""
    raise NotImplementedError(f'{type(self).__name__} has no method make')

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
      arguments=dict(self.arguments),
    )


def is_environment(task: Any) -> bool:
  """Whether the task has episodes, not single responses."""
  return callable(getattr(task, 'make', None))


def close(environment: Environment) -> None:
  """Ends an episode, if it has a method for that."""
  getattr(environment, 'close', lambda: None)()


def players_of(task: Any) -> int:
  """How many players an episode of the task has."""
  return getattr(task, 'players', 1)


def asked_by(task: Any) -> tuple[str, ...]:
  """Names of the partners that episodes of the task may ask."""
  return tuple(getattr(task, 'asks', ()))


def rewrites(task: Any) -> bool:
  """Whether episodes of the task may forget, see Reply."""
  return getattr(task, 'rewrites', False)


def seed_of(example: Example) -> int:
  """The seed of an example's episodes."""
  return int(example.meta.get(SEED, example.id))


@dataclasses.dataclass(frozen=True)
class Opened(Example):
  """The example `origin` whose prompt ends with the first observation.

  role: the player whose prompt it is; its id is `players * id + role`.
  others: the same of the other players, in order, if this is the first.
  failure: kind and detail if its episodes do not begin; the prompt then lacks
  the observation.
  """

  origin: Example | None = None
  observation: str = ''
  role: int = 0
  failure: tuple[str, str] | None = None
  others: tuple['Opened', ...] = ()


def opened(
  example: Example, observation: str | Sequence[str], chat: bool
) -> Opened:
  """The example with the first observation of its episodes, chat: a message.

  observation: of a game, by player; then the first player's example.
  """
  if isinstance(observation, str):
    return _opened(example, observation, chat, 0, 1)
  count = len(observation)
  first, *others = (
    _opened(example, text, chat, role, count)
    for role, text in enumerate(observation)
  )
  return dataclasses.replace(first, others=tuple(others))


def _opened(example, observation, chat, role, count):
  """What one of `count` players reads."""
  fields: dict[str, Any] = {
    f.name: getattr(example, f.name) for f in dataclasses.fields(example)
  }
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
