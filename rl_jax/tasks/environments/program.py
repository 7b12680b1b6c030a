"""Agent code that was written against a chat client, as an environment.

The code runs in a thread of the environment's process until it calls the
client; what it says is the observation, and the policy's turn is what the call
returns. Only one of the two threads runs at a time. A coroutine needs no
thread: thousands of them wait in one process.
"""

import asyncio
import collections
from collections.abc import Callable, Mapping, Sequence
import contextlib
import dataclasses
import inspect
import json
import queue
import threading
import types
from typing import Any, NamedTuple

from rl_jax import user_modules
from rl_jax.checks import checked
from rl_jax.tasks import base
from rl_jax.tasks.base import Example
from rl_jax.tasks.environments.base import (
  Ask,
  AsyncEnvironment,
  Environment,
  EnvironmentTask,
  Reply,
)
from rl_jax.tasks.episodes import CALL

_QUESTION = 'question'  # in Example.meta: the prompt of the task
_ANSWER, _ERROR = 'answer', 'error'  # keys of the outcome of a call
_MOST_CHARACTERS = 40_000  # of an answer, less than of a reply
_MOST_SAID = 2000  # of an error


@dataclasses.dataclass(frozen=True)
@checked
class Program(EnvironmentTask):
  """The prompts of a task of plain text, answered by agent code of the user:

    Program(task=QuestionAnswer(...), agent='my_agent.py:solve', system='...')

  agent: 'PATH.py:NAME', 'MODULE:NAME' or a function (client, example) -> the
    response, which the task judges. It calls the policy, as often as it likes
    and at least once, by
      client.chat.completions.create(messages=[...]).choices[0].message.content
    in which other arguments change nothing. It must be a function of the
    example and of its observations. Or a coroutine:

      async def solve(policy, example):
        text = await policy([{'role': 'user', 'content': example.prompt}])

    in which each `await policy(messages)` is a turn. It may await other things
    as well, which are repeated where a run continues, and must not block;
    `await policy.call(function, *arguments)` is not repeated, see Policy.call.
  chat: messages are those of the model's template: the first call has the
    system's message `system`, unless that is '', and one of a user; False: they
    are put one after another as plain text, after `system`.
  rewrites: whether a call may begin a new context: the messages of the first
  call, and others in place of all that followed, in chat form one of a user.
  Else calls must hold all messages of the call before, its reply as the
  assistant's, and something new from a user. Any other call is refused: its
  episode fails, with the reason.
  """

  task: Any = None
  agent: Any = ''
  system: str = ''
  chat: bool = True
  rewrites: bool = False
  reward_weights: dict[str, float] = base.outcome_only()

  def __post_init__(self):
    base.require(self.task, 'Program.task')
    object.__setattr__(self, 'agent', user_modules.reference(self.agent))
    try:
      inspect.signature(user_modules.resolve(self.agent)).bind(None, None)
    except TypeError as error:
      raise ValueError(
        f'Program.agent = {self.agent!r} cannot be called as (client, example):'
        f' {error}'
      ) from None

  @property
  def alphabet(self) -> str | tuple[str, ...] | None:
    """The task's alphabet, for a character tokenizer."""
    return self.task.alphabet

  @property
  def code_modules(self) -> tuple[str, ...]:
    """The module of the agent; experiment.json records its file."""
    return (self.agent.split(':')[0],)

  @property
  def traits(self) -> base.TaskTraits:
    """Code of the user may not end; the task judges what it returns."""
    return base.TaskTraits(
      chat=self.chat,
      rewrites=self.rewrites,
      workers='asyncio' if self._waits else 'process',
      global_random=not self._waits,
      needs_workers=True,
      reward_seconds=self.task.traits.reward_seconds,
    )

  @property
  def _waits(self):
    """Returns whether the agent is a coroutine."""
    return inspect.iscoroutinefunction(user_modules.resolve(self.agent))

  def num_prompts(self, split: str) -> int:
    return self.task.num_prompts(split)

  def example(self, split: str, index: int) -> Example:
    """The task's, whose prompt is what the agent says first."""
    inner = self.task.example(split, index)
    if inner.messages:
      raise ValueError(
        f'Program.task = {type(self.task).__name__} has prompts of messages: '
        'expected plain text, which the agent reads as example.prompt'
      )
    meta = {**inner.meta, _QUESTION: inner.prompt}
    return dataclasses.replace(inner, prompt=self.system, parts=(), meta=meta)

  def prepare(self) -> None:
    """Imports the agent once, before workers are forked."""
    user_modules.resolve(self.agent)
    self.task.prepare()

  def make(self, example: Example) -> Any:
    """An episode that has not started: Running, or of a coroutine Waiting."""
    meta = dict(example.meta)
    inner = dataclasses.replace(example, prompt=meta.pop(_QUESTION), meta=meta)
    if not self._waits:
      return Running(self, inner)
    agent = user_modules.resolve(self.agent)

    def begin(policy: Policy) -> Any:
      """Calls the agent."""
      return agent(policy, inner)

    return Waiting(begin, _Judged(self, inner))


class Conversation:
  """The words of an agent and of the policy, and the replies they make.

  system, chat, rewrites: see Program. opening: messages before the first
  observation.
  """

  def __init__(
    self,
    system: str,
    chat: bool,
    rewrites: bool = False,
    opening: Sequence[Mapping[str, str]] = (),
  ):
    self._system, self._chat, self._rewrites = system, chat, rewrites
    self._opening = [*opening]
    self._known: list[Mapping[str, str]] = []  # messages, with the last reply
    self._first: list[Mapping[str, str]] = []  # of the first call

  @property
  def has_asked(self) -> bool:
    """Returns whether the agent has called the policy."""
    return bool(self._known)

  def hear(self, action: str) -> None:
    """The reply to the call before."""
    self._known.append({'role': 'assistant', 'content': action})

  def asked(self, messages: Sequence[Mapping[str, str]]) -> Reply:
    """The observation that a call is."""
    known = self._known
    forget = self._rewrites and bool(known) and not begins(messages, known)
    known = self._first if forget else known or self._opening
    text = new_text(messages, known, self._system, self._chat)
    self._known = [*messages]
    self._first = self._first or [*messages]
    return Reply(text, forget=forget)

  def responded(self, response: Any) -> Reply:
    """The end, with the rewards of what the agent has returned."""
    raise NotImplementedError


class _Judged(Conversation):
  """A conversation whose end a task judges."""

  def __init__(self, task: Program, example: Example):
    super().__init__(task.system, task.chat, task.rewrites)
    self._task, self._example = task, example

  def responded(self, response: Any) -> Reply:
    """The end, with the reward of what the agent has returned."""
    if not self.has_asked:
      raise ValueError(f'{self._task.agent} has not called the client')
    if not isinstance(response, str):
      kind = type(response).__name__
      raise ValueError(f'{self._task.agent} returned {kind}, not text')
    rewards = self._task.task.reward(self._example, response)
    return Reply(rewards=rewards, done=True)


class Running(Environment):
  """One episode: the agent's thread, and what it waits for."""

  def __init__(self, task: Program, example: Example):
    self._example = example
    self._talk = _Judged(task, example)
    self._heard: queue.SimpleQueue = queue.SimpleQueue()  # by the agent
    self._said: queue.SimpleQueue = queue.SimpleQueue()  # (kind, value)
    completions = types.SimpleNamespace(create=self._create)
    chat = types.SimpleNamespace(completions=completions)
    self._client = types.SimpleNamespace(chat=chat)
    self._agent = user_modules.resolve(task.agent)

  def reset(self, seed: int) -> Reply:
    """Returns what the agent says at first."""
    del seed  # the example decides
    threading.Thread(target=self._run, daemon=True).start()
    return self._reply()

  def step(self, action: str) -> Reply:
    """Returns what the agent says when its call has returned the action."""
    self._talk.hear(action)
    self._heard.put(action)
    return self._reply()

  def close(self) -> None:
    """Ends the agent's thread at its call."""
    self._heard.put(None)

  def _run(self):
    try:
      self._said.put(('response', self._agent(self._client, self._example)))
    except BaseException as error:
      self._said.put(('error', error))

  def _create(self, messages: Sequence[Mapping[str, str]], **_: Any) -> Any:
    """Returns what the agent calls."""
    self._said.put(('messages', [dict(one) for one in messages]))
    text = self._heard.get()
    if text is None:
      raise SystemExit  # the episode is over
    message = types.SimpleNamespace(role='assistant', content=text)
    choice = types.SimpleNamespace(message=message, finish_reason='stop')
    return types.SimpleNamespace(choices=[choice])

  def _reply(self) -> Reply:
    kind, value = self._said.get()
    if kind == 'error':
      raise value
    return (
      self._talk.asked(value)
      if kind == 'messages'
      else self._talk.responded(value)
    )


class CallError(Exception):
  """A function of `policy.call` has raised an error; the text says which."""


class _Asked(NamedTuple):
  """A turn, with messages, or a call, which is made or known."""

  messages: list[dict[str, str]] | None
  making: asyncio.Future[str] | None
  known: str | None
  answer: asyncio.Future[str]


class Policy:
  """The policy, as a coroutine awaits it: `await policy(messages)` is a turn.

  expected: the first replies to turns and answers of calls, in this order.
  """

  def __init__(self, expected: Sequence[str]):
    self._expected, self._count = expected, 0
    self._asked: asyncio.Queue[_Asked] = asyncio.Queue()
    self._due: collections.deque[_Asked] = collections.deque()

  async def __call__(self, messages: Sequence[Mapping[str, str]]) -> str:
    """The policy's reply to messages with `role` and `content`."""
    return await self._ask([dict(one) for one in messages], None)

  async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
    """The answer of function(*arguments), which is written down and kept.

    An episode that is repeated, or a run that continues, does not make the call
    again, unless it was killed before the call had ended: for what costs money
    or time, or answers in another way the next time. A coroutine is awaited,
    another function runs in a thread. Several calls may run at the same time;
    the program hears of turns and calls in the order in which it made them.

    Returns:
      The answer as JSON gives it back: a tuple is a list.

    Raises:
      CallError: the function raised an error, or its answer is not JSON or has
        more than 40,000 characters.
    """
    making = None
    if self._count >= len(self._expected):
      making = asyncio.ensure_future(_outcome(function, arguments))
    outcome = json.loads(await self._ask(None, making))
    if _ERROR in outcome:
      raise CallError(outcome[_ERROR])
    return outcome[_ANSWER]

  async def _ask(self, messages, making):
    known = [*self._expected[self._count : self._count + 1], None][0]
    self._count += 1
    asked = _Asked(messages, making, known, asyncio.Future())
    self._asked.put_nowait(asked)
    return await asked.answer

  async def asked(self) -> list[dict[str, str]] | str:
    """The messages of the next turn, or the outcome of the next call."""
    one = await self._asked.get()
    self._due.append(one)
    if one.messages is not None:
      return one.messages
    if one.making is not None:
      return await one.making
    assert one.known is not None
    return one.known

  @property
  def waits(self) -> bool:
    """Returns whether a call is made whose turn it is."""
    return bool(self._due)

  def answer(self, text: str) -> bool:
    """Answers what was asked; returns whether it was a turn."""
    one = self._due.popleft()
    if not one.answer.done():  # else it was cancelled
      one.answer.set_result(text)
    return one.messages is not None

  def cancel(self) -> None:
    """Ends calls that run."""
    left = [*self._due]
    while not self._asked.empty():
      left.append(self._asked.get_nowait())
    for one in left:
      if one.making is not None:
        one.making.cancel()


async def _outcome(function, arguments):
  """The answer of a call, or what is wrong with it, as JSON."""
  try:
    if inspect.iscoroutinefunction(function):
      answer = await function(*arguments)
    else:
      answer = await asyncio.to_thread(function, *arguments)
      if inspect.isawaitable(answer):
        answer = await answer
    return _as_json(function, answer)
  except (Exception, SystemExit, asyncio.CancelledError) as error:
    said = f'{type(error).__name__}: {error}'
    return json.dumps({_ERROR: said[:_MOST_SAID]})


def _as_json(function, answer):
  named = function if inspect.isroutine(function) else type(function)
  name = named.__name__
  try:
    text = json.dumps({_ANSWER: answer}, allow_nan=False)
  except (TypeError, ValueError, RecursionError) as error:
    raise ValueError(
      f'policy.call: the answer of {name} is {answer!r:.200}, not JSON: {error}'
    ) from None
  if len(text) > _MOST_CHARACTERS:
    raise ValueError(
      f'policy.call: the answer of {name} has {len(text)} characters, more '
      f'than {_MOST_CHARACTERS}'
    )
  return text


class Waiting(AsyncEnvironment):
  """One episode of a coroutine, which waits for the policy in its own task.

  begin: the coroutine function of a Policy. talk: makes replies of messages and
  of what it returns.
  """

  def __init__(self, begin: Callable[[Policy], Any], talk: 'Conversation'):
    self._begin, self._talk = begin, talk
    self._running: asyncio.Task | None = None
    self._expected: tuple[str, ...] = ()
    self._policy: Policy | None = None

  def expect(self, actions: tuple[str, ...]) -> None:
    """Answers of calls are among the actions."""
    self._expected = actions

  async def reset(self, seed: int) -> Reply:
    """Returns what the agent says at first."""
    del seed  # the example decides
    self._policy = Policy(self._expected)
    self._running = asyncio.ensure_future(self._begin(self._policy))
    return await self._reply()

  async def step(self, action: str) -> Reply:
    """Returns what the agent says when its call has returned the action."""
    assert self._policy is not None
    if self._policy.answer(action):
      self._talk.hear(action)
    return await self._reply()

  async def close(self) -> None:
    """Cancels the agent."""
    if self._policy is not None:
      self._policy.cancel()
    if self._running is not None:
      self._running.cancel()
      with contextlib.suppress(asyncio.CancelledError, Exception):
        await self._running

  async def _reply(self) -> Reply:
    assert self._running is not None and self._policy is not None
    asked = asyncio.ensure_future(self._policy.asked())
    both = (asked, self._running)
    try:
      await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
      if self._policy.waits:  # or time would decide what comes first
        await asyncio.wait([asked])
    except asyncio.CancelledError:
      self._policy.cancel()
      self._running.cancel()
      raise
    finally:
      if not asked.done():
        asked.cancel()
    if not asked.done() or asked.cancelled():
      return self._talk.responded(self._running.result())
    said = asked.result()
    if isinstance(said, str):
      return Reply(ask=Ask(CALL, said))
    return self._talk.asked(said)


def new_text(
  messages: Sequence[Mapping[str, str]],
  known: Sequence[Mapping[str, str]],
  system: str,
  chat: bool,
) -> str:
  """Returns what is new after the messages that are known; ValueError: not only
  that.

  known: of the call before, with its reply; at the first call there are none
  but the system's.
  """
  first = [{'role': 'system', 'content': system}] if system else []
  known = [*known] or first
  for n, message in enumerate(known):
    if n >= len(messages) or _parts(messages[n]) != _parts(message):
      found = _parts(messages[n]) if n < len(messages) else 'nothing'
      raise ValueError(
        f'message {n} of a call is {found!r:.200}, not '
        f'{_parts(message)!r:.200}: a call must begin with the messages of the '
        'one before and its reply (the first one with Program.system)'
      )
  new = messages[len(known) :]
  roles = [message['role'] for message in new]
  if not new or 'assistant' in roles or (chat and roles != ['user']):
    raise ValueError(
      f'new messages of a call have the roles {roles}: expected '
      + ("['user'] in chat form" if chat else "some, none of 'assistant'")
    )
  return ''.join(message['content'] for message in new)


def begins(
  messages: Sequence[Mapping[str, str]], known: Sequence[Mapping[str, str]]
) -> bool:
  """Returns whether the messages begin with those that are known."""
  return [*map(_parts, messages[: len(known)])] == [*map(_parts, known)]


def _parts(message: Mapping[str, str]) -> tuple[str, str]:
  return message['role'], message['content']
