"""Tasks: numbered prompts, and named reward components of a response.

Nothing in this package imports JAX at module level, because reward workers
import it: the jittable verifiers live in `device_verifiers`.
"""

import abc
from collections.abc import Mapping, Sequence
import dataclasses
import functools
import inspect
import sys
from typing import Any, ClassVar, Protocol

from rl_jax import checks, user_modules
from rl_jax.tasks.episodes import AsyncEnvironment, DeviceReply, Environment

SPLITS = ('train', 'validation', 'test')
OUTCOME = 'outcome'  # the component that every task returns: 1 is solved
PLACE = 'place'  # in Example.meta: file and row of the data
PART = 'mixture_part'  # in Example.meta: the name that metrics are split by
COLUMNS = 'columns'  # in Example.meta: fields of the row that rewards read
# In Example.meta: the fields of the row that hold its options.
OPTION_FIELDS = 'option_fields'


@dataclasses.dataclass(frozen=True)
class Example:
  """One problem.

  `prompt` is what the policy continues, unless `messages` is set: then it is
  the tokenizer's chat form of them followed by `prefill` (see
  `templates.encode_prompt`). The verifier judges `prefill + response`.
  `arguments` are variables of the chat template, such as enable_thinking.
  Special tokens that data spell are ordinary text: `parts` is the prompt as
  template, data, template, ... in turn; without it all of the prompt is data.
  """

  prompt: str
  answer: str
  id: int  # stable index in its split
  meta: dict[str, Any] = dataclasses.field(default_factory=dict)
  messages: tuple[dict[str, Any], ...] = ()
  prefill: str = ''
  parts: tuple[str, ...] = ()
  arguments: dict[str, Any] = dataclasses.field(default_factory=dict)

  def __post_init__(self):
    if self.parts and ''.join(self.parts) != self.prompt:
      raise ValueError(
        f'Example.parts = {self.parts!r} do not make up prompt = '
        f'{self.prompt!r}'
      )


@dataclasses.dataclass(frozen=True)
class RecordedResponse:
  """A response to a prompt that data hold.

  `text`, or for a conversation `messages`: the assistant's turn and what
  follows it. turns: of an episode, instead: (action, next observation) of each
  turn. turn_ends: an end token closes what was said; else a turn ends by its
  length. truncated: the episode was cut before its end. reward: of the data, 1
  where they have none. label: 1 for a chosen or desirable response, 0 for a
  rejected one, None without a label.
  steps: parts of the text, which are encoded one by one, () for one part.
  step_labels: of each a number from 0 (wrong) to 1, () if the data have none.
  aspects: a label for each of several aspects, None where it is missing, () if
  the data have none.
  distance: 1 - cos of embeddings of prompt and text, None if unknown.
  annotator: number, from 0, of who compared the responses, None if unknown.
  """

  text: str = ''
  messages: tuple[dict[str, Any], ...] = ()
  turns: tuple[tuple[str, str], ...] = ()
  turn_ends: bool = False
  truncated: bool = False
  reward: float = 1.0
  label: int | None = None
  steps: tuple[str, ...] = ()
  step_labels: tuple[float, ...] = ()
  distance: float | None = None
  aspects: tuple[float | None, ...] = ()
  annotator: int | None = None


@dataclasses.dataclass(frozen=True)
class Option:
  """A text that may follow a prompt, to be compared with others.

  before: the text between the prompt and the option; it belongs to what is
  scored, but not to the text's length. right: whether it is a right one.
  """

  text: str
  before: str
  right: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskTraits:
  """The properties of a task that a run reads before it asks for prompts.

  No trait is part of a configuration: a task whose trait depends on a field
  writes `traits` as a property.
  """

  # Of episodes: prompts are conversations, the role of observations, variables
  # of the chat template, and what it has to say where calls of tools begin.
  chat: bool = False
  role: str = 'user'
  arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  call_mark: str = ''
  players: int = 1  # of a game, each of whom has its own group
  asks: tuple[str, ...] = ()  # names of partners, see Ask
  rewrites: bool = False  # whether replies may `forget`
  # False if episodes draw from generators of their own only: several may then
  # share a process without an exchange of the states of the global ones.
  global_random: bool = True
  # False if the same actions may be answered in another way, as by a tool of
  # the network. An episode is then never repeated: it is lost, and counted as a
  # mismatch, with its process and in a run that continues within it; methods
  # that repeat episodes are refused. `reset` must depend on its seed only.
  deterministic: bool = True
  # Of episodes: a step depends on the example and its own action only, see
  # Environment.continue_after. It is then made in any process, and repeated by
  # none; also with deterministic = False an episode outlives its process.
  stateless: bool = False
  # Of stateless, deterministic episodes: a step changes nothing anywhere, so
  # that one that is slow may be made a second time while the first one runs.
  pure: bool = False
  # Of episodes: 'process' makes one call of a process at a time; 'asyncio' runs
  # calls that are `async def` in an event loop, for thousands of episodes;
  # 'thread' runs blocking calls that may share a process. The last two need
  # global_random = False.
  workers: str = 'process'
  # Of stateless episodes: what the policy reads in place of the observation of
  # a step that took too long; '': verifier.on_turn_timeout says how it ends.
  timeout_text: str = ''
  needs_workers: bool = False  # a call of the reward may not end
  reward_seconds: float = 0.0  # how long its own limits let a call take
  turn_seconds: float = 0.0  # what its field of that name gives tools of a turn
  clusters: bool = False  # rewards have the component `cluster_id`
  # {name: text}: how responses of a mode begin, the cheapest first.
  modes: Mapping[str, str] = dataclasses.field(default_factory=dict)
  # {name: (component, component)}: evaluations have reward/NAME, the sum of the
  # first over all responses by that of the second.
  ratios: Mapping[str, tuple[str, str]] = dataclasses.field(
    default_factory=dict
  )


TRAITS = tuple(field.name for field in dataclasses.fields(TaskTraits))


def merged(
  traits: Sequence[TaskTraits], form: TaskTraits | None = None
) -> TaskTraits:
  """The traits of several tasks as one.

  form: whose chat form and number of players the episodes have.
  """
  return dataclasses.replace(
    form or TaskTraits(),
    asks=tuple(name for one in traits for name in one.asks),
    rewrites=any(one.rewrites for one in traits),
    global_random=any(one.global_random for one in traits),
    deterministic=all(one.deterministic for one in traits),
    stateless=all(one.stateless for one in traits),
    pure=all(one.pure for one in traits),
    workers=_common([one.workers for one in traits]) or 'process',
    timeout_text=_common([one.timeout_text for one in traits]),
    needs_workers=any(one.needs_workers for one in traits),
    reward_seconds=max((one.reward_seconds for one in traits), default=0.0),
    turn_seconds=max((one.turn_seconds for one in traits), default=0.0),
    clusters=any(one.clusters for one in traits),
    modes={},
  )


def _common(texts):
  """The text that all share, else ''."""
  return texts[0] if len(set(texts)) == 1 else ''


# Names of methods and attributes in earlier versions -> those of today.
FORMER = {'logged': 'recorded', 'num_logged': 'num_recorded'}
# Methods that some tasks have, see Task.supports.
OPTIONAL = (
  'reward',
  'make',
  'target',
  'recorded',
  'scored_options',
  'hinted',
  'hinted_by',
  'with_examples',
  'rubric',
  'with_rubric',
  'criticised',
  'spans',
  'device_answers',
  'reward_device',
  'row_inputs_device',
  'begin_device',
  'step_device',
)


class Task(user_modules.NamesCode, abc.ABC):
  """Base of all tasks: a frozen dataclass with fields that JSON can hold.

  A subclass writes `num_prompts`, `example` and `reward` (with episodes:
  derives from `EnvironmentTask` and writes `make`); everything else has a
  default here. It may have other methods and attributes. A public name that is
  almost one of these, or a trait that is an attribute of the class, is an error
  when the class is defined.
  """

  _supported: ClassVar[frozenset[str]] = frozenset()  # of OPTIONAL

  def __init_subclass__(cls, is_base: bool = False, **more: Any) -> None:
    """is_base: what the class defines are defaults of its subclasses."""
    super().__init_subclass__(**more)
    _check_declarations(cls)
    own = vars(cls)
    if not is_base:
      found = {name for name in OPTIONAL if own.get(name) is not None}
      lost = {name for name in OPTIONAL if name in own} - found
      cls._supported = cls._supported - lost | found

  @property
  def traits(self) -> TaskTraits:
    """Returns what a run asks of the task before it asks for prompts."""
    return TaskTraits()

  # No property: dataclasses write a field of this name into the instance.
  @functools.cached_property
  def reward_weights(self) -> Mapping[str, float]:
    """The weight of each component of the reward; by default the outcome."""
    return {OUTCOME: 1.0}

  @property
  def alphabet(self) -> str | tuple[str, ...] | None:
    """Characters for a tokenizer of them, or words and other pieces."""
    return None

  @property
  def template(self) -> Any:
    """Returns what writes prompts, see rl_jax.tasks.templates; None: nothing
    does.
    """
    return None

  @property
  def num_recorded(self) -> int:
    """Returns how many recorded responses every prompt has."""
    return 1

  @property
  def annotators(self) -> int | None:
    """People who compared the recorded responses; None: unknown."""
    return None

  def supports(self, name: str) -> bool:
    """Returns whether the task has the method, one of OPTIONAL."""
    return name in self._supported

  @abc.abstractmethod
  def num_prompts(self, split: str) -> int:
    """Prompts of a split; 0 if the task has no such split."""

  @abc.abstractmethod
  def example(self, split: str, index: int) -> Example:
    """The example of that index; always the same."""

  @abc.abstractmethod
  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """Components of the text before the end token; `outcome` is one."""

  def target(self, example: Example) -> str:
    """The target text of supervised training, without end token."""
    raise self._lacks('target')

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """Responses that data hold; by default the target, as the only one."""
    return (RecordedResponse(text=self.target(example)),)

  def scored_options(self, example: Example) -> tuple[Option, ...]:
    """The options whose likelihoods evaluations compare, in their order."""
    raise self._lacks('scored_options')

  def prepare(self) -> None:  # noqa: B027, most have nothing to do
    """Imports what `reward` or episodes need, before workers are forked."""

  def as_read(self, text: str) -> str:
    """An answer or response as a person reads it."""
    return text

  def tools_in(self, example: Example, action: str) -> tuple[str, ...]:
    """Names of the tools that an action calls, for times of calls by tool.

    Only tools that the task has, each once.
    """
    return ()

  def hinted(self, example: Example) -> Example:
    """The example with a hint."""
    raise self._lacks('hinted')

  def hinted_by(self, example: Example, share: float) -> Example:
    """The example with that share of its solution."""
    raise self._lacks('hinted_by')

  def with_examples(
    self, example: Example, solved: Sequence[tuple[Example, str]]
  ) -> Example:
    """The example after solved ones, each with its response."""
    raise self._lacks('with_examples')

  def rubric(self, example: Example) -> tuple[str, ...]:
    """The criteria by which responses are graded."""
    raise self._lacks('rubric')

  def with_rubric(self, example: Example, items: Sequence[str]) -> Example:
    """The example whose prompt shows these criteria."""
    raise self._lacks('with_rubric')

  def criticised(self, example: Example, response: str) -> Example:
    """The example whose prompt shows a response and a critique of it."""
    raise self._lacks('criticised')

  def spans(
    self, example: Example, response: str
  ) -> Sequence[tuple[int, int, float]]:
    """(begin, end, score) of parts of a response, in characters.

    1 is good and -1 bad; what is in no span is neither.
    """
    raise self._lacks('spans')

  def task_of(self, example: Example) -> 'Task':
    """The task that the example comes from, of several."""
    return self

  def weights_of(self, example: Example) -> Mapping[str, float]:
    """The weights of the rewards of an example."""
    return self.reward_weights

  def sizes(self, split: str) -> list[int]:
    """Prompts of each of the tasks that this one consists of."""
    return [self.num_prompts(split)]

  def device_answers(
    self, examples: Sequence[Example], tokenizer: Any
  ) -> tuple[Any, Any]:
    """(i32[N, A], i32[N]): what device verifiers read of examples."""
    raise self._lacks('device_answers')

  def reward_device(
    self,
    response_BT: Any,
    length_B: Any,
    answer_BA: Any,
    answer_length_B: Any,
    tokenizer: Any,
  ) -> dict[str, Any]:
    """{component: f32[B]}, the jittable form of `reward`."""
    raise self._lacks('reward_device')

  def row_inputs_device(
    self, response_BT: Any, length_B: Any, tokenizer: Any
  ) -> dict[str, Any]:
    """{key: f32[B, T]}: what pieces read of tokens (pieces/row_inputs.py)."""
    return {}

  def make(self, example: Example) -> Environment:
    """An episode that has not started."""
    raise self._lacks('make')

  def begin_device(self, answer_BA: Any) -> tuple[Any, Any]:
    """(state, state_B) after `reset`, jittable."""
    raise self._lacks('begin_device')

  def step_device(
    self, state: Any, action_BA: Any, length_B: Any, tokenizer: Any
  ) -> tuple[Any, DeviceReply]:
    """(state, reply) of every row by itself, jittable.

    The tokens of a turn are the first `length` of action_BA.
    """
    raise self._lacks('step_device')

  def start(self, example: Example) -> Environment:
    """The episode of `make`; TypeError for what is not an Environment."""
    episode = self.make(example)
    if not isinstance(episode, Environment | AsyncEnvironment):
      name = type(episode).__name__
      raise TypeError(
        f'{type(self).__name__}.make returned {name}, not an Environment: '
        'derive it from rl_jax.tasks.environments.Environment:\n\n'
        f'  class {name}(Environment):\n'
        '    def reset(self, seed: int) -> Reply:\n'
        '    def step(self, action: str) -> Reply:'
      )
    return episode

  def _lacks(self, name):
    return NotImplementedError(f'{type(self).__name__} has no method {name}')


_MEMBERS = (*checks.own_names(Task), 'code_modules', 'instructions')


def _check_declarations(cls):
  """Raises TypeError for what the class declares at the wrong place."""
  own, fields = vars(cls), checks.own_fields(cls)
  if 'traits' in fields:
    raise TypeError(
      f'{checks.where(cls)}: traits are not a field: write `traits = '
      'TaskTraits(...)` without a type, or a property'
    )
  checks.check_defaults(cls, _MEMBERS)
  for name in FORMER.keys() & own.keys():
    raise TypeError(
      f'{checks.where(cls)}: {name!r} is called {FORMER[name]!r} today'
    )
  by_property = any('traits' in vars(x) for x in cls.__mro__ if x is not Task)
  for name in checks.own_names(cls):
    known = ('reward_weights',) if name in fields else (*_MEMBERS, *TRAITS)
    if inspect.isfunction(own.get(name)):  # `annotator(index)` is not a slip
      known = tuple(one for one in known if one != f'{name}s')
    meant = checks.misspelt(name, known)
    if not (meant or name in TRAITS) or (name in fields and by_property):
      checks.check_parameters(cls, name)
      continue
    if (meant or name) in TRAITS:
      value = own.get(name)
      plain = isinstance(value, str | int | float | tuple)
      shown = repr(value) if plain else '...'
      raise TypeError(
        f'{checks.where(cls)}: {name!r} is read as a trait only: write `traits '
        f'= TaskTraits({meant or name}={shown})`, or a property `traits` '
        'where it depends on fields'
      )
    raise TypeError(
      f'{checks.where(cls)}: a Task has no {name!r}; did you mean {meant!r}? '
      f'What only this class uses begins with an underscore: _{name}'
    )


def outcome_only() -> Any:
  """The dataclass field {'outcome': 1.0}, left out of the hash."""
  return weights_field(outcome=1.0)


def weights_field(**weights: float) -> Any:
  """A dataclass field for reward_weights with these defaults."""
  return dataclasses.field(default_factory=lambda: dict(weights), hash=False)


def combine(components: Mapping[str, Any], weights: Mapping[str, float]) -> Any:
  """sum_k weights[k] * components[k], of numbers or of arrays [B].

  Raises: ValueError naming a weighted component that the task did not return.
  """
  missing = sorted(set(weights) - set(components))
  if missing:
    raise ValueError(
      f'reward_weights names {missing}, but the components are '
      f'{sorted(components)}'
    )
  return sum(weights[name] * components[name] for name in weights)


def require(value: Any, where: str) -> None:
  """Raises ValueError, which shows the form, for what is not a Task.

  where: the field that has the value.
  """
  if isinstance(value, Task):
    return
  if isinstance(value, user_modules.NotImported):
    raise ValueError(value.why)
  name = type(value).__name__
  raise ValueError(
    f'{where} = {value!r:.80} is not a task: {name} does not derive from '
    'rl_jax.tasks.Task. A task is\n\n'
    '  @dataclasses.dataclass(frozen=True)\n'
    '  class Mine(Task):\n'
    '    reward_weights: dict[str, float] = base.outcome_only()\n'
    '    traits = TaskTraits(...)  # where needs_workers, modes, ... differ\n'
    '    def num_prompts(self, split: str) -> int:\n'
    '    def example(self, split: str, index: int) -> Example:\n'
    '    def reward(self, example: Example, response: str) -> dict:\n\n'
    'and with episodes `class Mine(EnvironmentTask)` with a method '
    'make(example). A run that was started with the former class continues '
    'with --allow_change.'
  )


def check_task(task: Any) -> None:
  """Raises ValueError for what is not a Task, or has no weights.

  Users write their own tasks.
  """
  require(task, 'task')
  weights = task.reward_weights
  if not (isinstance(weights, Mapping) and weights) or not all(
    isinstance(x, (int, float)) and abs(x) <= sys.float_info.max
    for x in weights.values()
  ):
    raise ValueError(
      f'task.reward_weights = {weights!r}: expected finite weights by name'
    )


def check_index(task: Any, split: str, index: int) -> None:
  """Raises ValueError or IndexError unless the task has that example."""
  check_split(split)
  count = task.num_prompts(split)
  if not 0 <= index < count:
    raise IndexError(
      f'{type(task).__name__}: index {index} of split {split!r} is outside '
      f'0..{count - 1}'
    )


class _Sized(Protocol):
  """The sizes of the splits of a DrawnTask, which are its fields."""

  @property
  def num_train(self) -> int: ...

  @property
  def num_validation(self) -> int: ...

  @property
  def num_test(self) -> int: ...


class DrawnTask(Task, is_base=True):
  """A task whose prompts are drawn, not listed.

  The fields num_train, num_validation and num_test of a subclass are how many
  there are.
  """

  def num_prompts(self: _Sized, split: str) -> int:
    """The configured size."""
    check_split(split)
    sizes = {
      'train': self.num_train,
      'validation': self.num_validation,
      'test': self.num_test,
    }
    return sizes[split]


def check_split(split: str) -> None:
  """Raises ValueError unless split is one of SPLITS."""
  if split not in SPLITS:
    raise ValueError(f'split {split!r} is none of {", ".join(SPLITS)}')
