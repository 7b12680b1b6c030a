"""Live episodes of one worker process, and what they answer.

Imports no JAX. A request holds all actions of its episode, so that any process
can answer it: one that has the episode makes the last step, another one repeats
all of them and compares what the environment says with what it said before.
"""

import asyncio
from collections.abc import Callable, Sequence
import dataclasses
import hashlib
import importlib
import inspect
import json
from numbers import Integral
import os
import random
import sys
from typing import Any
import zlib

from rl_jax import checks
from rl_jax.verification import messages, numbers
from rl_jax.verification.sandbox.breach import BreachError

BREACH = 'breach'  # the kind of a reply of what can no longer judge
BUSY = 'busy'  # the kind of a message that asks for more time
CLOSING = 'closing'  # of one that an episode is closed, which may hang
_MAX_CHARACTERS = 50_000  # of an observation; a longer one is an error
_MAX_NAME_CHARACTERS = 200  # of a state or an action
_MAX_INFO_CHARACTERS = 20_000  # as JSON
_MAX_CALLS = 1_000_000  # of an action; sums of them are int32
_FLAGS = ('done', 'truncated', 'forget')


def in_this_process(call: Callable[[], Any]) -> Any:
  """call(); a process that it has forked does not return, but ends."""
  process = os.getpid()
  try:
    return call()
  finally:
    if os.getpid() != process:
      os._exit(1)


def check_reply(reply: Any, origin: str) -> dict[str, Any]:
  """The fields of a Reply as JSON, or ValueError that names a wrong one."""
  names = (
    'observation',
    'rewards',
    'acting',
    *_FLAGS,
    'state',
    'action',
    'calls',
    'duration',
    'info',
    'ask',
    'history',
  )
  is_reply = dataclasses.is_dataclass(reply) and not isinstance(reply, type)
  known = checks.values(reply) if is_reply else {}
  if not known.keys() >= {*names}:
    raise ValueError(f'{origin} returned {type(reply).__name__}, not a Reply')
  found = {name: known[name] for name in names}
  players = 1
  if isinstance(found['observation'], list | tuple):
    players = len(found['observation'])
    found['observation'] = list(found['observation'])
  for text in found['observation'] if players > 1 else [found['observation']]:
    _check_observation(text, origin)
  for name in ('acting', 'calls'):  # of NumPy, too
    is_count = isinstance(found[name], Integral)
    if is_count and not isinstance(found[name], bool):
      found[name] = int(found[name])
  acting, action = found['acting'], found['action']
  if type(acting) is not int or not 0 <= acting < players:
    raise ValueError(
      f'{origin}: acting = {acting!r:.80} is none of {players} players'
    )
  for name in _FLAGS:
    # Of NumPy, too; anything else is a mistake, such as text.
    if type(found[name]).__name__ not in ('bool', 'bool_'):
      raise ValueError(f'{origin}: {name} = {found[name]!r:.80} is not a bool')
    found[name] = bool(found[name])
  if type(found['calls']) is not int or not 0 <= found['calls'] <= _MAX_CALLS:
    raise ValueError(
      f'{origin}: calls = {found["calls"]!r:.80} is not a count up to '
      f'{_MAX_CALLS}'
    )
  if action is not None and not isinstance(action, str):
    raise ValueError(f'{origin}: action = {action!r:.80} is not text')
  found['ask'] = _checked_ask(found, origin)
  found['history'] = _checked_history(found, origin)
  duration = numbers.check_numbers({'duration': found['duration']}, origin)
  if duration['duration'] < 0:
    raise ValueError(f'{origin}: duration = {duration["duration"]} < 0')
  found |= duration
  found['rewards'] = _checked_rewards(found['rewards'], players, origin)
  found['state'] = None if found['state'] is None else _name(found['state'])
  found['action'] = None if action is None else _name(action)
  _check_info(found['info'], origin)
  return found


def _check_observation(text, origin):
  if not isinstance(text, str):
    kind = type(text).__name__
    raise ValueError(f'{origin}: the observation is {kind}, not text')
  if len(text) > _MAX_CHARACTERS:
    raise ValueError(
      f'{origin}: the observation has {len(text)} characters, more than '
      f'{_MAX_CHARACTERS}'
    )


def _check_info(info, origin):
  try:
    size = len(json.dumps(info))
  except (TypeError, ValueError, RecursionError) as error:
    raise ValueError(f'{origin}: info is not JSON: {error}') from None
  if size > _MAX_INFO_CHARACTERS:
    raise ValueError(
      f'{origin}: info has {size} characters, more than {_MAX_INFO_CHARACTERS}'
    )


def _checked_ask(found, origin):
  """The question as JSON; an episode that has ended asks nothing."""
  ask = found['ask']
  if ask is None:
    return None
  try:
    named, texts = ask.partner, (ask.text, *ask.candidates)
  except (AttributeError, TypeError):
    raise ValueError(f'{origin}: ask = {ask!r:.80} is not an Ask') from None
  if not all(isinstance(text, str) for text in (named, *texts)):
    raise ValueError(f'{origin}: ask = {ask!r:.80} has parts that are not text')
  if sum(map(len, texts)) > _MAX_CHARACTERS:
    raise ValueError(
      f'{origin}: the question has more than {_MAX_CHARACTERS} characters'
    )
  if found['done'] or found['truncated']:
    raise ValueError(f'{origin}: asks {named!r:.80} after its end')
  return {'partner': named, 'text': ask.text, 'candidates': list(texts[1:])}


def _checked_history(found, origin):
  """The history as JSON; only an observation that forgets has one."""
  pairs = [list(pair) for pair in found['history']]
  texts = [len(pair) == 2 and isinstance(pair[1], str | None) for pair in pairs]
  if not all(texts) or any(type(pair[0]) is not int for pair in pairs):
    text = repr(found['history'])[:80]
    raise ValueError(
      f'{origin}: history = {text} has not pairs of a turn and a text or None'
    )
  if pairs and not found['forget']:
    raise ValueError(f'{origin}: history without forget = True')
  if sum(len(text or '') for _, text in pairs) > _MAX_CHARACTERS:
    raise ValueError(
      f'{origin}: history has more than {_MAX_CHARACTERS} characters'
    )
  return pairs


def _checked_rewards(rewards, players, origin):
  """Numbers by name; in a game a list of them, by player."""
  name = f'{origin}: rewards'
  if players == 1:
    return numbers.check_numbers(rewards, name)
  if not rewards:
    return [{}] * players
  if not isinstance(rewards, list | tuple) or len(rewards) != players:
    raise ValueError(f'{name}: expected one for each of {players} players')
  return [numbers.check_numbers(one, name) for one in rewards]


def fingerprint(reply: dict[str, Any]) -> int:
  """CRC-32 of what a repetition must say again: all but info."""
  known = {name: x for name, x in reply.items() if name != 'info'}
  if not known.get('forget'):  # as before there were these fields
    known = {n: x for n, x in known.items() if n not in ('forget', 'history')}
  return zlib.crc32(json.dumps(known, sort_keys=True).encode())


class Host:
  """The episodes of one process.

  live: (environment, actions made, states of the global random generators) by
  episode.
  """

  _cancelled = 'error'  # the kind of a call that was cancelled

  def __init__(self, task: Any):
    self._task = task
    self._swaps = task.traits.global_random
    if self._swaps:  # or a tool that imports it later draws without a seed
      importlib.import_module('numpy.random')
    self._repeats = task.traits.deterministic
    self._stateless = task.traits.stateless
    self.live: dict[Any, tuple[Any, int | None, Any]] = {}
    self._loop: asyncio.AbstractEventLoop | None = None  # of `async def`

  def answer(self, *request: Any, **more: Any) -> tuple[str, Any, str]:
    """Returns what `answered` does, which waits for nothing in this class."""
    try:
      self.answered(*request, **more).send(None)
    except StopIteration as found:
      return found.value
    raise RuntimeError('an episode waits outside of its own event loop')

  async def answered(
    self,
    episode: tuple[int, int],
    example: Any,
    seed: int,
    actions: Sequence[str],
    before: Sequence[int],
    ends: Sequence[tuple[int, int]] = (),
    *,
    tell: Callable[[str, Any, str], None] = lambda *_: None,
  ) -> tuple[str, Any, str]:
    """('ok', reply, ''), or (kind, None, what happened), the episode's end.

    The kind BREACH is not a result of an episode: see `worker.check_breach`.

    Args:
      episode: (round, row), of all rounds.
      example: what the environment is made of.
      seed: of its reset.
      actions: all of the episode; none asks for the reset.
      before: fingerprints of the replies to the reset and all but the last
        action.
      ends: episodes that are over and are closed first.
      tell: called with (BUSY, None, '') between steps that are repeated, and
        with (CLOSING, what this call returns or None, which) before an episode
        is closed.
    """
    for other in ends:
      await self._end(other, tell)
    answer = await self._called(episode, example, seed, actions, before, tell)
    reply = answer[1]  # None unless the kind is 'ok'
    if reply is None or reply['done'] or reply['truncated']:
      await self._end(episode, tell, answer)
    return answer

  async def _called(self, *request):
    process = os.getpid()
    try:
      reply = await self._reply(*request)
    except (KeyboardInterrupt, GeneratorExit):
      raise
    except asyncio.CancelledError as error:
      kind, detail = self._cancelled, messages.of_error(error)
    except BreachError as error:
      kind, detail = BREACH, str(error)
    except _Mismatch as error:
      kind, detail = 'mismatch', messages.cut(str(error))
    except _Invalid as error:
      kind, detail = 'invalid', messages.cut(str(error))
    except BaseException as error:  # SystemExit, too, ends only its episode
      kind, detail = 'error', messages.of_error(error)
    else:
      return 'ok', reply, ''
    finally:
      if os.getpid() != process:  # a call has forked it
        os._exit(1)
    return kind, None, detail

  async def _reply(self, episode, example, seed, actions, before, tell):
    environment, made, state = self.live.get(episode, (None, None, None))
    reply: dict[str, Any] = {}  # that to the last call
    is_new = environment is None or made != len(actions) - 1
    if is_new and actions and self._stateless:
      await self._end(episode, tell)
      environment = self._task.start(example)
      self.live[episode] = environment, None, None
      environment.continue_after(tuple(actions[:-1]))
      if self._swaps:
        _seed(seed)
      reply = await self._checked(environment.step, actions[-1])
    elif is_new:
      await self._end(episode, tell)
      if actions and not self._repeats:
        raise _Mismatch('its process has ended; deterministic = False: lost')
      if self._swaps:
        _seed(seed)
      environment = self._task.start(example)
      self.live[episode] = environment, None, None
      environment.expect(tuple(actions))
      for n in range(len(actions) + 1):
        call = environment.step if n else environment.reset
        reply = await self._checked(call, actions[n - 1] if n else seed)
        if n < len(before) and fingerprint(reply) != before[n]:
          raise _Mismatch(f'repeated with seed {seed}, reply {n} differs')
        if n < len(actions):
          tell(BUSY, None, '')
    else:
      if self._swaps:
        _set_state(state)
      reply = await self._checked(environment.step, actions[-1])
    self.live[episode] = (
      *(environment, len(actions)),
      _state() if self._swaps else None,
    )
    return reply

  async def _checked(self, call, argument):
    found = await self._made(call, argument)
    try:
      return check_reply(found, call.__name__)
    except Exception as error:
      raise _Invalid(f'{type(error).__name__}: {error}') from None

  def close(self) -> None:
    """Ends the event loop of coroutines."""
    if self._loop is not None:
      self._loop.close()

  async def _made(self, call, *arguments):
    """The result of a call; this class makes one after the other."""
    found = call(*arguments)
    if inspect.iscoroutine(found):
      if self._loop is None or self._loop.is_closed():
        self._loop = asyncio.new_event_loop()
      found = self._loop.run_until_complete(found)
    return found

  async def _end(self, episode, tell, answer=None):
    environment, *_ = self.live.pop(episode, (None,))
    if environment is None:
      return
    number, row = episode
    tell(CLOSING, answer, f'row {row} of round {number}, as it was closed')
    process = os.getpid()
    try:
      await self._made(environment.close)
    except (Exception, SystemExit, asyncio.CancelledError):
      pass  # its replies are known, and it is gone
    if os.getpid() != process:
      os._exit(1)
    if answer is None:
      tell(BUSY, None, '')


class _Mismatch(Exception):
  """An episode went another way as it was repeated, or cannot be."""


class _Invalid(Exception):
  """A reply of the wrong type."""


def _name(value):
  """A short text, equal if and (but for a hash) only if the values are."""
  text = value if isinstance(value, str) else repr(value)
  if len(text) <= _MAX_NAME_CHARACTERS:
    return text
  return hashlib.blake2b(text.encode('utf-8', 'replace')).hexdigest()


def _state():
  """The states of the global generators that environments may draw from."""
  numpy = sys.modules.get('numpy.random')
  return random.getstate(), None if numpy is None else numpy.get_state()


def _set_state(state):
  random.setstate(state[0])
  if state[1] is not None:
    sys.modules['numpy.random'].set_state(state[1])


def _seed(seed):
  random.seed(seed)
  if 'numpy.random' in sys.modules:
    sys.modules['numpy.random'].seed(seed % (1 << 32))
