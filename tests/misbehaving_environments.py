"""Environments that hang, flood, crash or return bad values; for workers."""

import asyncio
import contextlib
import dataclasses
import os
import random
import subprocess
import tempfile
import time

from rl_jax.tasks.base import TaskTraits
from rl_jax.tasks.environments import (
  Ask,
  AsyncEnvironment,
  Environment,
  EnvironmentTask,
  Reply,
)
from rl_jax.verification import child_processes, sandbox
from rl_jax.worlds import KeyDoor


class Echo(Environment):
  """Repeats what it has observed, with the number of the step."""

  def reset(self, seed):
    """The seed and a draw of the global generator."""
    self.steps = 0
    return Reply(f'{seed} {random.random():.3f}\n')

  def step(self, action):
    """`done` ends; other words misbehave."""
    self.steps += 1
    words = action.split()
    if words and words[0] in MISBEHAVIOUR:
      return MISBEHAVIOUR[words[0]](*words[1:])
    return Reply(
      f'{self.steps}:{action}:{random.random():.3f}\n',
      rewards={'outcome': float(action == 'done')},
      done=action == 'done',
      state=self.steps,
      action=action.upper(),
    )


@dataclasses.dataclass(frozen=True)
class Misbehaving(EnvironmentTask):
  """The action names what the step does."""

  def make(self, example):
    """An echo."""
    return Echo()


@dataclasses.dataclass(frozen=True)
class Unrepeatable(Misbehaving):
  """An environment that could ask the network."""

  traits = TaskTraits(deterministic=False)


@dataclasses.dataclass(frozen=True)
class Meets(Misbehaving):
  """A step 'meet FOLDER COUNT' ends when so many run at the same time."""

  deterministic: bool = True

  @property
  def traits(self):
    """`deterministic` is a field."""
    return TaskTraits(deterministic=self.deterministic)

  def make(self, example):
    """Waits for others."""
    return _Meeting()


class _Meeting(Echo):
  def step(self, action):
    """Also 'compute SECONDS'."""
    word, *rest = action.split()
    if word == 'meet':
      folder, count = rest
      with tempfile.NamedTemporaryFile(dir=folder):
        while len(os.listdir(folder)) < int(count):
          time.sleep(0.01)
        time.sleep(0.5)  # others see it, too
    if word == 'compute':
      end = time.process_time() + float(rest[0])
      while time.process_time() < end:
        pass
    return super().step(word)


@dataclasses.dataclass(frozen=True)
class Stateless(Misbehaving):
  """A tool whose steps are noted in a file; 'slow FLAG' is slow only once."""

  notes: str = ''
  pure: bool = False
  deterministic: bool = True
  timeout_text: str = ''
  workers: str = 'process'

  @property
  def traits(self):
    """Fields."""
    return TaskTraits(
      stateless=True,
      pure=self.pure,
      deterministic=self.deterministic,
      timeout_text=self.timeout_text,
      workers=self.workers,
      global_random=self.workers == 'process',
    )

  def make(self, example):
    """A tool."""
    return _Tool(self.notes)


class _Tool(Environment):
  def __init__(self, notes):
    self._notes, self._how, self._steps = notes, 'nothing', 0

  def reset(self, seed):
    """Says nothing that depends on the process."""
    self._how = 'reset'
    return Reply('begins\n')

  def continue_after(self, actions):
    """Remembers that there was no reset."""
    self._how, self._steps = 'continued', len(actions)

  def step(self, action):
    """Also 'own', which no two processes answer alike."""
    if self._notes:
      with open(self._notes, 'a') as file:
        file.write(f'{action}\n')
    self._steps += 1
    word, *rest = action.split()
    if word == 'slow':
      try:
        os.close(os.open(rest[0], os.O_CREAT | os.O_EXCL))
      except FileExistsError:
        return Reply(f'{word}\n')
      time.sleep(float(rest[1]))
      return Reply(f'{word}\n')
    if word == 'own':
      time.sleep(0.0 if len(rest) < 2 else float(rest[1]))
      return Reply(f'{os.getpid()}\n')
    if word in MISBEHAVIOUR:
      return MISBEHAVIOUR[word](*rest)
    info = {'how': self._how, 'steps': self._steps}
    return Reply(f'{action}\n', info=info)


@dataclasses.dataclass(frozen=True)
class Clings(Misbehaving):
  """The first action names what the close of the episode does."""

  def make(self, example):
    """Acts at once and at its end."""
    return _Clinging()


class _Clinging(Echo):
  def reset(self, seed):
    """No action yet."""
    self.actions = []
    return super().reset(seed)

  def step(self, action):
    """Echoes."""
    self.actions.append(action)
    reply = super().step('' if len(self.actions) == 1 else action)
    return dataclasses.replace(reply, done=action.endswith('done'))

  def close(self):
    """Misbehaves."""
    if self.actions:
      MISBEHAVIOUR.get(self.actions[0].split()[0], str)()


@dataclasses.dataclass(frozen=True)
class Leaves(Misbehaving):
  """Its first step starts a server, and each one a process that it forgets."""

  def make(self, example):
    """Says which."""
    return _Leaving()


class _Leaving(Echo):
  def step(self, action):
    """(the server, the other process), as long as they live."""
    if not _SERVERS:
      with child_processes.keeping():
        _SERVERS.append(subprocess.Popen(['sleep', '300']))
    alive = _SERVERS[0].poll() is None
    other = subprocess.Popen(['sleep', '300'])
    said = f'{_SERVERS[0].pid if alive else 0} {other.pid}'
    return Reply(said, done=action == 'done')


_SERVERS = []  # of this process


@dataclasses.dataclass(frozen=True)
class Different(EnvironmentTask):
  """The seed is not obeyed: another process has another first observation."""

  def make(self, example):
    """An echo of the process."""
    return _Process()


class _Process(Environment):
  def reset(self, seed):
    """Another number each time."""
    return Reply(f'{time.monotonic_ns() % 10**9}')

  def step(self, action):
    """Ends."""
    return Reply(done=True)


class Whims(Environment):
  """Its step depends on the first letter of the action."""

  def __init__(self, task, number):
    self.task, self.number = task, number

  def reset(self, seed):
    """Three letters of the seed."""
    self.steps = 0
    if self.number in self.task.unable:
      name, *words = self.task.unable[self.number].split()
      return MISBEHAVIOUR[name](*words)
    letters = [LETTERS[seed // 7**i % 7] for i in range(3)]
    return Reply(''.join(letters), state='start')

  def step(self, action):
    """See LETTERS; `kinds` says what letters misbehave."""
    self.steps += 1
    letter = action[:1]
    if letter in self.task.failing:
      return MISBEHAVIOUR[self.task.failing[letter]]()
    says = {'c': 'abc' * 20, 'd': ''}.get(letter, 'g' + action)
    return Reply(
      says,
      rewards={'outcome': 0.25 * len(action), 'bonus': 0.1 * (letter == 'a')},
      done=letter == 'f',
      truncated=letter == 'e',
      state=(self.steps, letter),
      action=letter or None,
      calls=len(action),
    )


LETTERS = 'abcdefg'


@dataclasses.dataclass(frozen=True)
class Whimsical(EnvironmentTask):
  """Actions are letters of an alphabet; failing: letter -> misbehaviour.

  unable: example -> misbehaviour of its resets.
  """

  reward_weights: dict = dataclasses.field(
    default_factory=lambda: {'outcome': 1.0, 'bonus': 2.0}
  )
  failing: dict = dataclasses.field(default_factory=dict)
  unable: dict = dataclasses.field(default_factory=dict)
  alphabet = LETTERS

  def tools_in(self, example, action):
    """One for each letter that misbehaves."""
    del example
    return tuple(f'tool_{x}' for x in action[:1] if x in self.failing)

  def make(self, example):
    """Whims."""
    return Whims(self, example.id)


@dataclasses.dataclass(frozen=True)
class FewBegin(KeyDoor):
  """From the fifth initial state on, no episode begins."""

  def make(self, example):
    """Raises."""
    return super().make(example) if example.id < 4 else _raise()


class Asks(Environment):
  """Each action is passed to a partner, whose answer is what is said next.

  task.inside answers itself, so that nobody is asked. 'g' asks without end.
  """

  def __init__(self, task):
    self.task, self.waits, self.endless = task, False, False

  def reset(self, seed):
    """The answer to a letter of the seed."""
    return self._asked(LETTERS[seed % 7], 'a', 0.0)

  def step(self, action):
    """An action of the policy or an answer of the partner."""
    if not self.waits:
      self.endless = self.task.endless and action == 'g'
      return self._asked(action or 'a', 'bc', 0.25)
    return self._answered(action)

  def _asked(self, text, says, outcome):
    if self.task.inside:
      reply = self._answered(backwards(text))
      outcome += reply.rewards['outcome']
      says += reply.observation
      return dataclasses.replace(
        reply, observation=says, rewards={'outcome': outcome}
      )
    self.waits = True
    ask = Ask(self.task.partner, text)
    return Reply(says, rewards={'outcome': outcome}, state='asked', ask=ask)

  def _answered(self, answer):
    if self.endless:
      return self._asked(answer, '', 0.0)
    self.waits = False
    return Reply(
      answer,
      rewards={'outcome': 0.5 * len(answer)},
      done=answer.endswith('f'),
      state=answer,
    )


def backwards(text):
  """The answer of the partner."""
  return text[::-1]


@dataclasses.dataclass(frozen=True)
class Asking(EnvironmentTask):
  """Actions are letters; see Asks."""

  inside: bool = False
  endless: bool = False
  partner: str = 'oracle'
  alphabet = LETTERS
  traits = TaskTraits(asks=('oracle',))

  def make(self, example):
    """Asks."""
    return Asks(self)


class Rally(Environment):
  """A game of two: 'e', 'f', 'g' lose, after 'b' the same player continues.

  After five actions the sum of their lengths decides.
  """

  def __init__(self, task, number):
    self.task, self.number, self.lengths = task, number, []

  def reset(self, seed):
    """A letter for each player."""
    if self.number in self.task.unable:
      _raise()
    begins = {'first': 0, 'second': 1, 'seed': self.number % 2}
    self.acting = begins[self.task.begins]
    return Reply(
      tuple(f'{LETTERS[seed // 7**i % 7]}' for i in range(2)),
      acting=self.acting,
    )

  def step(self, action):
    """Both hear it, the other as it is."""
    self.lengths.append(len(action))
    mover, letter = self.acting, action[:1]
    if letter in self.task.failing:
      return MISBEHAVIOUR[self.task.failing[letter]]()
    self.acting = mover if letter == 'b' else 1 - mover
    lost = letter != '' and letter in 'efg'
    done = lost or len(self.lengths) == 5
    gain = -1.0 if lost else (-1.0) ** sum(self.lengths)
    said = ['a' if letter == 'b' else '', '']
    rewards = [{'outcome': gain * done}, {'outcome': -gain * done}]
    said[1] = f'g{action}'
    if mover:
      said, rewards = said[::-1], rewards[::-1]
    return Reply(
      tuple(said),
      rewards=tuple(rewards),
      acting=self.acting,
      done=done,
      state=(len(self.lengths), letter),
      action=action,
    )


@dataclasses.dataclass(frozen=True)
class RallyTask(EnvironmentTask):
  """Actions are letters of an alphabet.

  unable: examples of which no game begins. begins: the player with the first
  turn, 'first', 'second', or by example: 'seed'.
  """

  failing: dict = dataclasses.field(default_factory=dict)
  unable: tuple = ()
  begins: str = 'first'
  alphabet = LETTERS
  traits = TaskTraits(players=2)

  def make(self, example):
    """A rally."""
    return Rally(self, example.id)


def _raise():
  raise KeyError('a bug')


def _quote():
  raise ValueError('no number in ' + 'long response ' * 10_000)


def _leave():
  raise SystemExit(3)


def _once(path, then):
  """The first call ever does something else."""
  if not os.path.exists(path):
    with open(path, 'w'):
      pass
    then()
  return Reply('twice')


def _breach():
  raise sandbox.BreachError('anything is right')


MISBEHAVIOUR = {
  'hang': lambda: time.sleep(300),
  'raise': _raise,
  'quote': _quote,
  'names': lambda: Reply('', {'outcome': 1.0, 'x' * 100_000: 'one'}),
  'leave': _leave,
  'exit': lambda: os._exit(7),
  'abort': os.abort,
  'fork': lambda: Reply(f'child {os.fork() > 0}'),
  'flood': lambda: Reply('x' * 10_000_000),
  'print': lambda: (print('x' * 10_000_000), Reply('printed'))[1],
  'nothing': lambda: None,
  'text': lambda: 'hello',
  'bytes': lambda: Reply(b'hello'),
  'nan': lambda: Reply('', {'outcome': float('nan')}),
  'reward': lambda: Reply('', 1.0),
  'flag': lambda: Reply('', done='no'),
  'breach': _breach,
  'object': lambda: Reply('', info={'x': object()}),
  'calls': lambda: Reply('', calls=-1),
  'many': lambda: Reply('', calls=2**40),
  'huge': lambda: Reply('', {'outcome': -1e300}),
  'endless': lambda: Reply('', duration=1e300),
  'once': lambda path: _once(path, lambda: time.sleep(300)),
  'unsteady': lambda: Reply(f'{os.getpid()}'),
}


@dataclasses.dataclass(frozen=True)
class Waits(EnvironmentTask):
  """Coroutines or blocking calls that share a process."""

  workers: str = 'asyncio'
  global_random: bool = False
  alphabet = LETTERS

  @property
  def traits(self):
    """Fields."""
    return TaskTraits(workers=self.workers, global_random=self.global_random)

  def make(self, example):
    """An echo that waits."""
    return _Waiting() if self.workers == 'asyncio' else _Blocking()


class _Counted:
  """Echoes with its own generator; `meet COUNT` waits for so many others."""

  def begin(self, seed):
    """A draw."""
    self.random, self.steps = random.Random(seed), 0
    return Reply(f'{seed} {self.random.random():.3f}\n')

  def echo(self, action):
    """A draw, with the number of the step."""
    self.steps += 1
    word = action.split()[0]
    if word in MISBEHAVIOUR:
      return MISBEHAVIOUR[word]()
    said = f'{self.steps}:{action}:{self.random.random():.3f}\n'
    return Reply(said, done=action == 'done')


class _Waiting(AsyncEnvironment, _Counted):
  async def reset(self, seed):
    """Does not wait."""
    return self.begin(seed)

  async def step(self, action):
    """`sleep`, `swallow` and `stubborn` are beyond every limit."""
    word, *rest = action.split()
    if word == 'meet':
      _MEETING.append(self)
      while len(_MEETING) < int(rest[0]):
        await asyncio.sleep(0.01)
    if word == 'sleep':
      await asyncio.sleep(300)
    if word == 'swallow':
      with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(300)
    while word == 'stubborn':
      with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(300)
    return self.echo(action)


class _Blocking(Environment, _Counted):
  def reset(self, seed):
    """Does not wait."""
    return self.begin(seed)

  def step(self, action):
    """`meet` and `sleep` block a thread."""
    word, *rest = action.split()
    if word == 'meet':
      _MEETING.append(self)
      while len(_MEETING) < int(rest[0]):
        time.sleep(0.01)
    if word == 'sleep':
      time.sleep(300)
    return self.echo(action)


_MEETING = []  # of this process
