"""Rewards from worker processes: a failed call affects only its own sample."""

import collections
from collections.abc import Sequence
import dataclasses
import json
import logging
import math
from multiprocessing import connection as connection_lib
import pickle
import threading
import time
from typing import Any

from rl_jax.checks import checked, chosen, ranged
from rl_jax.verification import processes
from rl_jax.verification import worker as worker_lib

KINDS = ('ok', 'error', 'invalid', 'timeout', 'died', 'stray')
_MAX_CHUNK = 32
_MAX_REPLY_BYTES = 1 << 20  # a worker with a larger reply is killed
_MAX_RESTARTS = 3  # of the nursery in one call of reward
_LOGGER = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class VerifierConfig:
  """Worker processes that compute rewards.

  num_workers: 0 computes them in this process (trusted, fast tasks only).
  memory_limit_bytes: address space of a worker, so that a call that allocates
    too much fails alone; null: no limit.
  on_timeout: 'invalid' leaves a sample beyond the limit out of its group;
    'wrong' gives it the reward 0 in every component.
  on_device: rewards by the task's `reward_device`, a function of tokens; then
    there are no workers.
  """

  num_workers: int = ranged(0, 0, 1024)
  timeout_seconds: float = ranged(10.0, 0.0, open_low=True)
  memory_limit_bytes: int | None = ranged(8 << 30, 1 << 20)
  on_timeout: str = chosen('invalid', ('invalid', 'wrong'))
  on_device: bool = False


@dataclasses.dataclass(frozen=True)
class Outcome:
  """The result of one reward call.

  `components` is None unless kind is 'ok', or 'timeout' that counts as wrong.
  error: reward raised. invalid: it did not return finite numbers by name with
  an `outcome`. timeout: it was killed at the time limit. died: its process
  ended (memory, os._exit, a crash).
  stray: its process sent a reply that was not due, and was killed.
  """

  components: dict[str, float] | None
  kind: str = 'ok'
  detail: str = ''

  @property
  def error(self) -> str | None:
    """Kind and detail of a failure, or None."""
    return None if self.kind == 'ok' else f'{self.kind}: {self.detail}'


class VerifierPool:
  """Computes rewards in worker processes, with a time limit per sample.

  num_workers=0 computes them in this process, without a time limit: for trusted
  procedural tasks. Otherwise the task is pickled to new processes that cannot
  use an accelerator; examples must be picklable. A worker that exceeds
  timeout_seconds on one sample is killed with its descendants and replaced;
  the samples queued behind it are judged by another. A process that a call
  leaves behind is killed before the next call. Requests are numbered: a worker
  that replies twice or out of turn is killed and counted. memory_limit_bytes
  bounds the address space of a worker, with the libraries that it imports.
  Workers are not a sandbox: run generated code with
  `rl_jax.verification.sandbox`.

  Raises: RuntimeError if a worker cannot load the task; TypeError if the task
    has no method `reward`.
  """

  def __init__(
    self,
    task: Any,
    num_workers: int = 0,
    timeout_seconds: float = 10.0,
    *,
    memory_limit_bytes: int | None = None,
    on_timeout: str = 'invalid',
    start_timeout_seconds: float = 120.0,
  ):
    if num_workers < 0:
      raise ValueError(f'num_workers = {num_workers} is negative')
    if not 0 < timeout_seconds < math.inf:
      raise ValueError(
        f'timeout_seconds = {timeout_seconds} is not in (0, inf)'
      )
    _check_task(task)
    check_limits(task, num_workers, timeout_seconds)
    self._on_timeout = on_timeout
    self._names = {'outcome', *getattr(task, 'reward_weights', ())}
    self._task, self._timeout = task, timeout_seconds
    self._counts = collections.Counter()
    self._logged = set()
    self._lock = threading.Lock()
    self._closed = False
    self._crew = None
    if num_workers:
      self._crew = processes.Crew(
        task, num_workers, memory_limit_bytes, start_timeout_seconds
      )
    elif hasattr(task, 'prepare'):
      task.prepare()

  def __enter__(self) -> 'VerifierPool':
    return self

  def __exit__(self, *_) -> None:
    self.close()

  def counts(self) -> dict[str, int]:
    """Samples ever judged, by kind; stray: and replies after a call's end."""
    return {kind: self._counts[kind] for kind in KINDS}

  def worker_pids(self) -> list[int]:
    """Process ids of the live workers."""
    if self._crew is None:
      return []
    return [worker.pid for worker in self._crew.workers]

  def close(self) -> None:
    """Ends all processes; a second call does nothing."""
    self._closed = True
    if self._crew is not None:
      self._crew.close()

  def reward(
    self, examples: Sequence[Any], responses: Sequence[str]
  ) -> list[Outcome]:
    """One Outcome per sample, in order."""
    if len(examples) != len(responses):
      raise ValueError(
        f'{len(examples)} examples but {len(responses)} responses'
      )
    with self._lock:
      if self._closed:
        raise RuntimeError('the VerifierPool is closed')
      samples = list(zip(examples, responses, strict=True))
      if self._crew is None:
        outcomes = [
          Outcome(components, kind, detail)
          for kind, components, detail in (
            worker_lib.judge(self._task, *sample) for sample in samples
          )
        ]
      else:
        round_ = _Round(self._crew, samples, self._timeout)
        outcomes = round_.run()
        self._counts['stray'] += round_.late_strays
      outcomes = [self._with_weighted(outcome) for outcome in outcomes]
    self._count(samples, outcomes)
    if self._on_timeout == 'wrong':
      return self._timeouts_as_wrong(outcomes)
    return outcomes

  def _timeouts_as_wrong(self, outcomes):
    for outcome in outcomes:
      self._names.update(outcome.components or ())
    zeros = dict.fromkeys(sorted(self._names), 0.0)
    return [
      dataclasses.replace(o, components=zeros) if o.kind == 'timeout' else o
      for o in outcomes
    ]

  def _with_weighted(self, outcome):
    """The outcome, or an invalid one if a weighted component is missing."""
    if outcome.components is None:
      return outcome
    weighted = getattr(self._task, 'reward_weights', {})
    missing = sorted(set(weighted) - set(outcome.components))
    if not missing:
      return outcome
    detail = (
      f'reward_weights names {missing}, but the components are '
      f'{sorted(outcome.components)}'
    )
    return Outcome(None, 'invalid', detail)

  def _count(self, samples, outcomes):
    for (example, _), outcome in zip(samples, outcomes, strict=True):
      self._counts[outcome.kind] += 1
      if outcome.kind != 'ok' and outcome.kind not in self._logged:
        self._logged.add(outcome.kind)
        _LOGGER.warning(
          'verifier: first sample of kind %r (later ones are only counted), '
          'example %s: %s',
          outcome.kind,
          getattr(example, 'id', '?'),
          outcome.detail,
        )


def check_limits(task: Any, num_workers: int, timeout_seconds: float) -> None:
  """Raises ValueError if the task needs workers, or more time than they have.

  A task may have the attributes `needs_workers` (its reward may not end) and
  `reward_seconds` (how long its own limits let a reward call take).
  """
  name = type(task).__name__
  if num_workers == 0 and getattr(task, 'needs_workers', False):
    raise ValueError(
      f'{name} needs a time limit: verifier.num_workers = 0, which has none; '
      'set it to 1 or more'
    )
  longest = getattr(task, 'reward_seconds', 0.0)
  if num_workers and timeout_seconds <= longest:
    raise ValueError(
      f'verifier.timeout_seconds = {timeout_seconds} must exceed {longest}, '
      f'what the limits of {name} allow: else its samples are voided, not wrong'
    )


def _check_task(task):
  if callable(getattr(task, 'reward', None)):
    return
  hint = ''
  if hasattr(task, 'score'):
    hint = ': rename its method `score` to `reward`'
  raise TypeError(
    f'{type(task).__name__} has no method reward(example, response){hint}'
  )


def _parsed(number, kind, components, detail):
  """(number, Outcome) of a reply; ValueError or TypeError if it is none."""
  if type(number) is not int or kind not in ('ok', 'error', 'invalid'):
    raise ValueError(f'a reply with number {number!r}, kind {kind!r}')
  if kind == 'ok':
    return number, Outcome(worker_lib.check_components(components))
  return number, Outcome(None, kind, str(detail))


def _is_alive(worker):
  """Whether what can be read is a message, not the end of the worker."""
  try:
    worker.connection.recv_bytes(_MAX_REPLY_BYTES)
  except (EOFError, ConnectionError):
    return False
  except OSError:
    pass  # incomplete or too long
  return True


class _Round:
  """One call of reward: hands out chunks and checks time limits."""

  def __init__(self, crew, samples, timeout_seconds):
    self._crew, self._samples = crew, samples
    self._timeout = timeout_seconds
    self._waiting = collections.deque(range(len(samples)))
    self._outcomes = [None] * len(samples)
    self._judges = [None] * len(samples)  # the worker that has answered
    self._first = crew.numbers(len(samples))  # number of the first sample
    self.late_strays = 0
    self._restarts = 0
    per_worker = math.ceil(len(samples) / (4 * crew.num_workers))
    self._chunk = max(1, min(per_worker, _MAX_CHUNK))

  def run(self):
    """Returns the outcomes, in the order of the samples."""
    try:
      if not self._crew.workers:
        self._crew.restart()
      while self._hand_out():
        self._listen()
    except BaseException:
      # Busy workers would reply to the next call: start new ones there.
      self._crew.close()
      raise
    return self._outcomes

  def _hand_out(self):
    """Sends chunks to idle workers; False when all samples are done."""
    for i in range(self._crew.num_workers):
      worker = self._crew.workers[i]
      if self._waiting and not worker.pending:
        self._give(worker)
    return self._waiting or any(w.pending for w in self._crew.workers)

  def _give(self, worker):
    if worker.connection.poll():  # a late reply, or its end
      self.late_strays += _is_alive(worker)
      self._replace(worker)
      return
    size = min(self._chunk, len(self._waiting))
    chunk = [self._waiting.popleft() for _ in range(size)]
    payload = pickle.dumps(
      [(self._first + i, *self._samples[i]) for i in chunk]
    )
    worker.pending.extend(chunk)
    worker.since = time.monotonic()
    try:
      worker.connection.send_bytes(payload)
    except OSError:
      # It died while idle, or does not read: these samples did not cause it.
      self._replace(worker)

  def _listen(self):
    busy = {w.connection: w for w in self._crew.workers if w.pending}
    if not busy:
      return
    first = min(worker.since for worker in busy.values())
    wait = max(0.0, first + self._timeout - time.monotonic())
    for ready in connection_lib.wait(list(busy), wait):
      worker = busy.pop(ready)
      if worker.pending:  # else a restart has requeued its samples
        self._read(worker)
    late = time.monotonic() - self._timeout
    for worker in busy.values():
      overdue = worker.pending and worker.since <= late
      if overdue and not worker.connection.poll():
        self._fail(worker, 'timeout', f'killed after {self._timeout} seconds')

  def _read(self, worker):
    try:
      reply = json.loads(worker.connection.recv_bytes(_MAX_REPLY_BYTES))
      number, outcome = _parsed(*reply)
    except (EOFError, OSError, ValueError, TypeError, RecursionError) as error:
      self._fail(worker, 'died', f'the worker process ended ({error!r})')
      return
    index = number - self._first
    if index != worker.pending[0]:
      self._stray(worker, index)
      return
    worker.pending.popleft()
    self._judges[index], self._outcomes[index] = worker, outcome
    worker.since = time.monotonic()

  def _stray(self, worker, index):
    """Voids the sample that was answered twice, else the one being judged."""
    if 0 <= index < len(self._judges) and self._judges[index] is worker:
      self._outcomes[index] = Outcome(None, 'stray', 'it was answered twice')
      self._replace(worker)
    else:
      self._fail(worker, 'stray', 'a reply that was not due')

  def _fail(self, worker, kind, detail):
    """Fails the sample being judged; those behind it are queued again."""
    guilty = worker.pending[0]
    if self._replace(worker):
      self._waiting.remove(guilty)
      self._outcomes[guilty] = Outcome(None, kind, detail)

  def _replace(self, worker):
    """Requeues its samples; False if the nursery has ended, too."""
    self._requeue(worker)
    try:
      self._crew.replace(worker)
      return True
    except OSError:
      self._restarts += 1
      if self._restarts > _MAX_RESTARTS:
        raise RuntimeError(
          f'the verifier processes ended {self._restarts} times in one call: '
          'is the machine out of memory?'
        ) from None
      for other in self._crew.workers:
        self._requeue(other)
      self._crew.restart()
      return False

  def _requeue(self, worker):
    self._waiting.extendleft(reversed(worker.pending))
    worker.pending.clear()
