"""Environments of the package `verifiers`, whose rollouts are coroutines."""

from collections.abc import Generator, Mapping, Sequence
import contextlib
import dataclasses
import functools
import os
import signal
import string
import types
from typing import Any

from rl_jax import user_modules
from rl_jax.checks import checked
from rl_jax.tasks import base
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import EnvironmentTask, Reply
from rl_jax.tasks.environments.program import Conversation, Policy, Waiting

_ROW = 'row'  # in Example.meta: of the environment's dataset
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class Verifiers(EnvironmentTask):
  """Rollouts of an environment of verifiers 0.1, judged by its rubric.

    # my_environment.py
    import verifiers
    def environment():
      return verifiers.load_environment('wordle')

    Verifiers(environment='my_environment.py:environment')

  environment: 'PATH.py:NAME', 'MODULE:NAME' or a function () -> an environment
    with `rollout(input, client, model, sampling_args)`. Each process makes one
    before its first rollout, and rollouts share an event loop. Requests of the
    environment are turns of the policy, whose messages follow those of the
    request before; a limit or a temperature that the environment asks for
    changes nothing.
  solved: the reward from which on an episode counts as solved.
  alphabet: for a character tokenizer.

  Prompts of training are rows of its `get_dataset`; those of validation are the
  first half of `get_eval_dataset` at most, those of tests follow them. A prompt
  ends with a message of the user. An environment whose requests have tools of
  the API fails, with the reason: see WithTools.
  Components: `reward` of the rubric, `outcome` 1 if it is `solved`, and each of
  the rubric's functions by name. Source: https://github.com/PrimeIntellect-ai/
  verifiers. Needs the extra 'verifiers'.
  """

  environment: Any
  solved: float = 1.0
  alphabet: str | tuple[str, ...] = string.printable
  reward_weights: dict[str, float] = base.weights_field(reward=1.0)

  def __post_init__(self):
    reference = user_modules.reference(self.environment)
    object.__setattr__(self, 'environment', reference)

  @property
  def traits(self) -> TaskTraits:
    """Rollouts wait in one event loop."""
    return TaskTraits(chat=True, workers='asyncio', global_random=False)

  @property
  def code_modules(self) -> tuple[str, ...]:
    """The module of the environment; experiment.json records its file."""
    return (self.environment.split(':')[0],)

  def num_prompts(self, split: str) -> int:
    """Rows of a split, at most as many as the fields say."""
    base.check_split(split)
    made = _made(self.environment)
    if split == 'train':
      return min(self.num_train, len(made.get_dataset()))
    return min(self.num_held_out, len(made.get_eval_dataset()) // 2)

  def example(self, split: str, index: int) -> Example:
    """A row, with the messages that come before the user's last one."""
    base.check_index(self, split, index)
    made, place = _made(self.environment), index
    rows = made.get_dataset() if split == 'train' else made.get_eval_dataset()
    if split == 'test':
      place += self.num_prompts(split)
    row = dict(rows[place])
    prompt = row.get('prompt')
    if not isinstance(prompt, list) or not prompt:
      raise ValueError(f'{self.environment}: row {place} has no messages')
    *before, last = map(_message, prompt)
    if last['role'] != 'user':
      raise ValueError(
        f'{self.environment}: the prompt of row {place} ends with a message of '
        f"{last['role']!r}: expected 'user'"
      )
    example = super().example(split, index)
    return dataclasses.replace(
      example,
      messages=tuple(before),
      answer=str(row.get('answer', '')),
      meta={**example.meta, _ROW: row},
    )

  def prepare(self) -> None:
    """Makes the environment once before workers are forked.

    So what it imports is there, and what it lacks is said at start.
    """
    _made(self.environment)

  def make(self, example: Example) -> Any:
    """An episode that has not started."""
    rollout = functools.partial(_rollout, self, example)
    return Waiting(rollout, _Talk(self, example))


def _made(reference):
  """The environment of this process.

  One that was made before a fork would share its pipes with other processes, as
  those of a rubric that computes in processes.
  """
  return _made_by(reference, os.getpid())


@functools.cache
def _made_by(reference, process):
  del process
  with _own_signals():
    return user_modules.resolve(reference)()


@contextlib.contextmanager
def _own_signals() -> Generator[None]:
  """Lets signals do what they did before.

  Environments of the package end the process, which is to save its run.
  """
  known = {one: signal.getsignal(one) for one in _SIGNALS}
  try:
    yield
  finally:
    for one, handler in known.items():
      if signal.getsignal(one) is not handler:
        signal.signal(one, handler)


async def _rollout(task, example, policy):
  """The rewards of a rollout by components."""
  made, row = _made(task.environment), dict(example.meta[_ROW])
  client = _Client(policy)
  state = await made.rollout(row, _adapted(client), 'policy', {})
  if state.get('error') is not None and not client.said_nothing:
    raise state['error']
  await made.rubric.score_rollout(state)
  metrics = {k: float(x) for k, x in (state['metrics'] or {}).items()}
  reward = float(state['reward'])
  return {**metrics, 'reward': reward, base.OUTCOME: reward >= task.solved}


class _Message(types.SimpleNamespace):
  """A message of the API, whose fields the package asks for by this method."""

  def model_dump(self) -> dict[str, Any]:
    """The fields."""
    return dict(vars(self))


class _Client:
  """A chat client whose completions are turns of the policy."""

  def __init__(self, policy: Policy):
    self._policy, self._count = policy, 0
    self.said_nothing = False  # which the package takes for an error
    completions = types.SimpleNamespace(create=self._create)
    self.chat = types.SimpleNamespace(completions=completions)

  async def _create(
    self, *, messages: Sequence[Any], tools: Any = None, **_: Any
  ) -> Any:
    """The policy's turn as a completion."""
    if tools:
      raise ValueError(
        'the environment has tools of the API, which the policy does not read: '
        'expected none (see tasks.WithTools)'
      )
    text = await self._policy([*map(_message, messages)])
    self._count += 1
    self.said_nothing = not text
    message = _Message(role='assistant', content=text, tool_calls=None)
    choice = types.SimpleNamespace(
      index=0, message=message, finish_reason='stop', logprobs=None
    )
    return types.SimpleNamespace(
      id=str(self._count),
      created=0,
      model='policy',
      choices=[choice],
      usage=None,
    )


def _adapted(client):
  """The client in the package's own form."""
  try:
    from verifiers.clients import OpenAIChatCompletionsClient
  except ImportError as error:
    raise ImportError(
      "tasks.Verifiers needs the extra 'verifiers': pip install "
      "'rl_jax[verifiers]'"
    ) from error
  return OpenAIChatCompletionsClient(client)


def _message(message: Any) -> dict[str, str]:
  """Role and text of a message, a dict or an object with a method for one."""
  known = message if isinstance(message, Mapping) else message.model_dump()
  content = known['content']
  if not isinstance(content, str):
    raise ValueError(f'a message has the content {content!r:.200}, not text')
  return {'role': known['role'], 'content': content}


class _Talk(Conversation):
  """Messages after those of the prompt, and the rubric's rewards."""

  def __init__(self, task: Verifiers, example: Example):
    super().__init__('', True, opening=example.messages)
    self._name = task.environment

  def responded(self, response: Any) -> Reply:
    """The end, with the rewards."""
    if not self.has_asked:
      raise ValueError(f'{self._name}: its rollout has asked for nothing')
    return Reply(rewards=response, done=True)
