"""A table of points at which a run is killed; a process ends itself there.

Functions are patched from outside, in a process that is about to run; the
library has no hooks.
"""

from collections.abc import Sequence
import dataclasses
import importlib
import itertools
import json
import os
import pathlib
import random
import signal
import threading
import time
import zlib

SAVER = 'rl_jax.records.checkpoints.checkpointer:Checkpointer'
ORBAX = 'orbax.checkpoint:AsyncCheckpointer'
FILES = 'rl_jax.records.checkpoints.files'
COLLECT = 'rl_jax.rollouts.collect'
SELECTOR = 'rl_jax.rollouts.host_selector:HostSelector'
WRITER = 'rl_jax.records.metrics:MetricsWriter'
SERIALS = 64  # of a file of answers
CALLS = 'calls_made.txt'
JOURNAL = 'rl_jax.verification.journal:AnswerJournal'
REWARDS = 'rl_jax.verification.numbered_rewards:NumberedRewards'
ANSWERS = 'rl_jax.episodes.journal'
EPISODES = 'rl_jax.episodes.records:EpisodeRecords'
GAME = 'rl_jax.episodes.game:Game'
SLOTS = 'rl_jax.episodes.slot_runner'
ENGINE = 'rl_jax.decoding.slot_engine:RunningSlots'
_OPENS = 3  # the call of `ask` that opens the prompts of the first rollout


@dataclasses.dataclass(frozen=True)
class Fault:
  """The point at which a process ends itself.

  kind: 'term' is a SIGTERM, 'pause' a SIGSTOP, the others are SIGKILLs.
  target: 'module:Class.function'. when: 'before' or 'after' its call number
  `call`, 'half': with half of what it appends written, or seconds after it.
  within: only calls during a call of this function count.
  """

  kind: str
  target: str
  call: int
  when: str | float
  within: str = ''

  def __str__(self):
    name = self.target.split(':')[1]
    inside = self.within and f' within {self.within.split(":")[1]}'
    when = (
      self.when if isinstance(self.when, str) else f'{self.when:.3f} s past'
    )
    return f'{self.kind}: {when} call {self.call} of {name}{inside}'


def faults(episodes: bool = False, host: bool = False) -> list[Fault]:
  """All points of runs with or without episodes, in their own order.

  host: where their rows wait.
  """
  draw = random.Random(0)
  prune, commit = f'{SAVER}._prune', f'{FILES}:commit'
  points = [
    ('save', f'{SAVER}.save', 3, 'before'),
    ('save', f'{ORBAX}.save', 2, 'before'),
    ('save', f'{ORBAX}.save', 2, 'after'),
    ('save', f'{ORBAX}.save', 3, 0.002),
    ('save', f'{ORBAX}.save', 2, 0.005),
    ('save', f'{ORBAX}.save', 3, 0.01),
    ('save', f'{ORBAX}.save', 2, 0.02),
    ('save', f'{SAVER}._finish', 3, 'before'),
    ('save', f'{ORBAX}.wait_until_finished', 5, 'after'),
    ('save', commit, 2, 'before'),
    ('save', f'{FILES}:size_and_crc', 3, 'before', commit),
    ('save', f'{FILES}:size_and_crc', 5, 'after', commit),
    ('save', commit, 3, 'after'),
    ('save', prune, 2, 'before'),
    ('save', f'{FILES}:delete', 1, 'before', prune),
    ('save', f'{FILES}:delete', 2, 'after', prune),
    ('rounds', f'{SELECTOR}.select', 4, 'after'),
    ('rounds', f'{SELECTOR}.observe', 4, 'after'),
    ('rounds', f'{COLLECT}:Sampler.start', 5, 'before'),
    ('rounds', f'{COLLECT}:Sampler.start', 4, 'after'),
    ('rounds', f'{COLLECT}:Collector.judge', 4, 'after'),
    ('rounds', f'{COLLECT}:Collector._fill', 2, 'before'),
    ('rounds', f'{COLLECT}:Collector._fill', 3, 'after'),
    ('writer', f'{WRITER}._append', 4, 'before'),
    ('writer', f'{WRITER}._append', 3, 'after'),
    ('writer', f'{WRITER}._append', 5, 'half'),
    ('writer', f'{WRITER}._append', 6, 'half'),
    (
      'writer',
      'rl_jax.records.trackers.tensorboard:TensorBoard.log',
      2,
      'before',
    ),
    ('writer', f'{WRITER}.offsets', 3, 'after'),
    ('writer', f'{WRITER}.truncate_to', 1, 'after'),
  ]
  if episodes:
    points += _turns()
    points += _copies() if host else []
  else:
    points += _rewards()
  found = [Fault(*point) for point in points]
  found += [
    Fault('term', 'rl_jax.runs.loop:Trainer.iteration', 2, 0.01),
    Fault('term', f'{ORBAX}.save', 2, 0.001),
  ]
  # At random after the first iteration has started: usually some of them on.
  found += [
    Fault(
      'random', 'rl_jax.runs.loop:Trainer.iteration', 1, draw.uniform(0, 1.5)
    )
    for _ in range(8)
  ]
  draw.shuffle(found)
  return found


def _rewards() -> list[tuple]:
  """Points in the journal of rewards.

  Between an outcome and its line, in the line, between the line and its use.
  """
  points = [
    (f'{JOURNAL}.add', 40, 'before'),
    (f'{JOURNAL}._append', 50, 'half'),
    (f'{JOURNAL}._append', 45, 'after'),
    (f'{REWARDS}.mark', 2, 'after'),
    (f'{REWARDS}.reward', 4, 'after'),
  ]
  return [('journal', *point) for point in points]


def _turns() -> list[tuple]:
  """Between the calls of environments, and within them.

  Between a reply and its line, within the line, between the line and its use.
  """
  ask = f'{ANSWERS}:NumberedCalls.ask'
  add, used = (f'{ANSWERS}:JournaledCalls.{x}' for x in ('keep', 'poll'))
  line = f'{JOURNAL}._append'
  made = 'rl_jax.episodes.calls:SessionCalls'
  opens = 'rl_jax.episodes.beginnings:open_all'
  points = [
    (ask, _OPENS, 'before'),
    (ask, _OPENS, 'after'),
    (opens, 3, 'before'),
    (opens, 3, 'after'),
    (f'{ANSWERS}:NumberedCalls.mark', 2, 'after'),
    (f'{ANSWERS}:NumberedCalls.stream', 2, 'after'),
    (f'{ANSWERS}:NumberedCalls.over', 1, 'before'),
    (f'{ANSWERS}:NumberedCalls.over', 2, 'after'),
    (f'{made}.submit', 30, 'before'),
    (f'{made}.submit', 45, 'after'),
    (f'{made}.poll', 9, 0.001),
    (f'{made}.poll', 40, 'after'),
    *((add, number, 'before') for number in (5, 40, 60)),
    *((add, number, 'after') for number in (6, 41, 75)),
    *((line, number, 'half') for number in (7, 42, 61)),
    (used, 43, 'after'),
    (f'{SLOTS}:SlotRunner.start', 2, 'before'),
    (f'{SLOTS}:SlotRunner.start', 2, 'after'),
    (f'{SLOTS}:SlotRunner.finish', 2, 'after'),
    (f'{GAME}.hear', 20, 'before'),
    (f'{GAME}.hear', 45, 'after'),
    (f'{GAME}.advance', 2, 'before'),
    (f'{GAME}.advance', 5, 'after'),
    (f'{ENGINE}.feed', 2, 'after'),
    (f'{ENGINE}.sample', 4, 'after'),
    (f'{ENGINE}.sample', 6, 0.002),
    (f'{EPISODES}._finished', 1, 'before'),
    (f'{EPISODES}._finished', 2, 'after'),
  ]
  return [('turns', *point) for point in points]


def _copies() -> list[tuple]:
  """Between the copy of keys to the host and their use."""
  points = [
    (f'{ENGINE}._park', 2, 'after'),
    (f'{ENGINE}._park', 5, 0.001),
    (f'{ENGINE}._return', 2, 'before'),
    (f'{ENGINE}._return', 4, 'after'),
  ]
  return [('copies', *point) for point in points]


def _resolve(target: str) -> tuple[object, str]:
  """(owner, attribute) of 'module:Class.function'."""
  module, _, path = target.partition(':')
  owner = importlib.import_module(module)
  *classes, name = path.split('.')
  for one in classes:
    owner = getattr(owner, one)
  return owner, name


def _die() -> None:
  os.kill(os.getpid(), signal.SIGKILL)
  time.sleep(60)


def _half(owner: object, arguments: Sequence) -> None:
  """Writes half of the last line that the call would append."""
  if isinstance(arguments[0], str):  # MetricsWriter._append(name, rows)
    name, rows = arguments
    file, line = owner._files[name]._file, json.dumps(rows[-1])
  else:  # AnswerJournal._append(line)
    line = json.dumps(arguments[0])
    number = arguments[0]['of'][0] // SERIALS
    file = owner._files.get(number) or owner._opened(number)
  file.write(line[: len(line) // 2].encode())
  file.flush()


def _pause() -> None:
  os.kill(os.getpid(), signal.SIGSTOP)


def _terminate() -> None:
  print(f'signalled at {time.time()}', flush=True)
  os.kill(os.getpid(), signal.SIGTERM)


def arm(fault: Fault) -> None:
  """Makes this process end itself."""
  end = _terminate if fault.kind == 'term' else _die
  if fault.kind == 'pause':
    end = _pause
  calls, inside = itertools.count(1), threading.local()
  if fault.within:
    owner, name = _resolve(fault.within)
    around = getattr(owner, name)

    def marked(*arguments, **named):
      inside.now = True
      try:
        return around(*arguments, **named)
      finally:
        inside.now = False

    setattr(owner, name, marked)
  owner, name = _resolve(fault.target)
  original = getattr(owner, name)

  def fatal(*arguments, **named):
    counted = not fault.within or getattr(inside, 'now', False)
    hit = counted and next(calls) == fault.call
    if hit and fault.when == 'half':
      _half(arguments[0], arguments[1:])
    if hit and fault.when in ('before', 'half'):
      end()
    if hit and isinstance(fault.when, float):
      threading.Timer(fault.when, end).start()
    result = original(*arguments, **named)
    if hit and fault.when == 'after':
      end()
    return result

  setattr(owner, name, fatal)


def time_out_once(workdir: pathlib.Path) -> None:
  """Every eighth sample times out the first time that it is verified.

  So do calls of environments. Whether a beginning does depends on its seed, not
  on the call: a process that continues asks for beginnings that others knew.
  """
  from rl_jax.episodes.calls import SessionCalls
  from rl_jax.episodes.journal import JournaledCalls, NumberedCalls
  from rl_jax.verification.numbered_rewards import NumberedRewards
  from rl_jax.verification.pool import Outcome, VerifierPool
  from rl_jax.verification.sessions import Answer

  marks = workdir / 'verified_before.txt'
  seen = set(marks.read_text().split()) if marks.exists() else set()
  reward, poll = VerifierPool.reward, SessionCalls.poll
  numbered_reward = NumberedRewards.reward
  ask, keep = NumberedCalls.ask, JournaledCalls.keep
  name = None  # of a sample of the rewards that are computed
  openings = set()  # serials of rounds that open examples

  def is_late(one):
    return one not in seen and zlib.crc32(one.encode()) % 8 == 0

  def call_name(request):
    if request.serial in openings:
      return f'seed/{request.payload.seed}'
    return '/'.join(map(str, request.key[:3]))

  def slow_reward(self, examples, responses, *more):
    if not more:  # not of a journal
      return reward(self, examples, responses)
    known, heard = more
    late = {n for n in range(len(examples)) if is_late(name(n))}
    late -= known.keys()
    failed = Outcome(None, 'timeout', 'killed after a while')

    def late_heard(place, outcome, queued, ran):
      heard(place, failed if place in late else outcome, queued, ran)
      note(name(place))

    outcomes = reward(self, examples, responses, known, late_heard)
    return [failed if n in late else one for n, one in enumerate(outcomes)]

  def slow_poll(self, timeout):
    late = {
      'outcome': 'timeout',
      'reply': Answer(None, 'timeout', 'killed after a while'),
    }
    return [
      dataclasses.replace(
        one, **(late if is_late(call_name(one.request)) else {})
      )
      for one in poll(self, timeout)
    ]

  def note(one):
    seen.add(one)
    with marks.open('a') as file:
      file.write(f'{one}\n')

  def named_reward(self, examples, responses):
    nonlocal name
    name = f'{self._number}/{{}}'.format
    return numbered_reward(self, examples, responses)

  def noted_ask(self, requests, kept=None):
    if kept is not None:
      openings.add(self._number)
    return ask(self, requests, kept)

  def noted_keep(self, answer):
    keep(self, answer)
    note(call_name(answer.request))

  VerifierPool.reward, SessionCalls.poll = slow_reward, slow_poll
  NumberedRewards.reward = named_reward
  NumberedCalls.ask, JournaledCalls.keep = noted_ask, noted_keep


def count_calls(workdir: pathlib.Path) -> None:
  """Notes calls of environments that are made, and lines that come and go.

  All in their order, over all processes of the run, see `made_twice`.
  """
  from rl_jax.episodes.calls import SessionCalls
  from rl_jax.episodes.journal import JournaledCalls, NumberedCalls
  from rl_jax.verification.journal import SERIALS

  submit, keep = SessionCalls.submit, JournaledCalls.keep
  forget = NumberedCalls.forget

  def note(what, *key):
    with (workdir / CALLS).open('a') as file:
      print(what, *key, file=file)

  def noted_submit(self, request):
    note('call', *request.key, request.crc)
    submit(self, request)

  def noted_keep(self, answer):
    keep(self, answer)
    note('line', *answer.request.key, answer.request.crc)

  def noted_forget(self, rounds):
    note('gone', rounds // SERIALS * SERIALS)  # whole files go
    forget(self, rounds)

  SessionCalls.submit, JournaledCalls.keep = noted_submit, noted_keep
  NumberedCalls.forget = noted_forget


def made_twice(workdir: pathlib.Path) -> tuple[int, int, list[str]]:
  """(calls, those without a line that were made again, those with a line).

  What a process asks before it has read the checkpoint has the numbers of
  the first rounds, whose lines go with their file.
  """
  path = workdir / CALLS
  lines = path.read_text().splitlines() if path.exists() else []
  made, answered, again, wrong = set(), set(), 0, []
  for what, key in (line.split(' ', 1) for line in lines):
    if what == 'line':
      answered.add(key)
      continue
    if what == 'gone':
      answered = {k for k in answered if int(k.split()[0]) >= int(key)}
      continue
    again += key in made
    made.add(key)
    if key in answered:
      wrong.append(key)
  return len(made), again, wrong
