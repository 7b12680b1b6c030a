"""Episodes in worker processes: a failed one costs only its own row."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import threading
import time
from typing import Any

from rl_jax.verification import messages, processes, session_host
from rl_jax.verification.call_queue import Call, CallQueue, Closing, Rules
from rl_jax.verification.concurrent_queue import ConcurrentQueue
from rl_jax.verification.pool import EPISODE_CALLS, check_limits
from rl_jax.verification.tally import Result, Tally
from rl_jax.verification.worker import check_breach
from rl_jax.verification.worker_pool import WorkerPool

KINDS = ('ok', 'error', 'invalid', 'timeout', 'died', 'stray', 'mismatch')
# Are counted, too: an episode that failed as it was closed, and a call that was
# made twice and answered in two ways.
CLOSE, UNEQUAL = 'close', 'unequal'
RESET, STEP = EPISODE_CALLS
WORKERS = ('process', 'asyncio', 'thread')
AGAIN = ('retries', 'hedged')


@dataclasses.dataclass(frozen=True)
class Request:
  """One call: the reset of an episode, or the step of its last action."""

  episode: tuple[int, int]  # (round, row)
  example: Any
  seed: int
  actions: tuple[str, ...] = ()
  before: tuple[int, ...] = ()  # see Host.answer


@dataclasses.dataclass(frozen=True)
class Answer(Result):
  """The reply of an environment, fields of a Reply; None unless kind is 'ok'.

  error: it raised. invalid: it returned no Reply, or one with wrong types, with
  a number that is not finite or huge, or with too long a text. timeout: its
  process was killed at the time limit. died: its process ended, twice.
  mismatch: it was repeated in another process and said something else, or its
  process has ended and the task is not `deterministic`.
  """

  reply: dict[str, Any] | None
  kind: str = 'ok'
  detail: str = ''


@dataclasses.dataclass(frozen=True)
class Made:
  """A call that is complete; queued, ran: seconds before and during it."""

  request: Request
  answer: Answer
  queued: float = 0.0
  ran: float = 0.0


class SessionPool(WorkerPool):
  """Makes episodes of an environment task and steps them.

  num_workers=0 has them in this process, without a time limit: for trusted
  environments. Otherwise calls of different episodes run side by side, each
  episode in one worker process; None has as many processes as calls wait
  without computing, at most processes.MOST. More episodes share processes. A
  call beyond timeout_seconds is killed with its process, of which the other
  episodes are repeated in a new one; so are all that a call needs and no
  process has, and those whose process is busy with another one. An episode that
  does not close within that time, or ends its process as it is closed, costs no
  row: it is counted as 'close'.
  limits, rates: of calls at once and in a second, by kind, RESET and STEP.

  Raises: RuntimeError if a worker cannot load the task; `ask` and `poll` raise
    sandbox.BreachError if the task does.
  """

  def __init__(
    self,
    task: Any,
    num_workers: int | None = 0,
    timeout_seconds: float = 10.0,
    *,
    memory_limit_bytes: int | None = None,
    start_timeout_seconds: float = processes.START_SECONDS,
    limits: Mapping[str, int] | None = None,
    rates: Mapping[str, float] | None = None,
  ):
    check_limits(task, num_workers, timeout_seconds)
    _check_workers(task)
    self._lock, self._name = threading.Lock(), type(task).__name__
    # In this process: calls that wait for `poll`, episodes that are over.
    self._here: list[tuple[tuple[int, ...], Request]] = []
    self._ended: set[tuple[int, int]] = set()
    crew, self._host, self._queue = None, None, None
    if num_workers == 0:
      task.prepare()
      self._host = session_host.Host(task)
    else:
      kind = CallQueue
      if task.traits.workers != 'process':
        kind, num_workers = ConcurrentQueue, num_workers or processes.cores()
      crew = processes.Crew(
        task, num_workers, memory_limit_bytes, start_timeout_seconds, True
      )
      rules = Rules(
        parse=_parsed,
        failed=lambda kind, detail: Answer(None, kind, detail),
        over=_is_over,
        movable=task.traits.deterministic or task.traits.stateless,
        hedged=task.traits.pure,
        same=_same,
        limits=limits or {},
        rates=rates or {},
      )
      self._queue = kind(crew, timeout_seconds, rules)
    super().__init__(Tally((*KINDS, CLOSE, UNEQUAL)), crew)

  def ask(self, requests: Sequence[Request]) -> list[Answer]:
    """The answers, in order; requests are of different episodes.

    Episodes of other rounds are over.
    """
    rounds = {request.episode[0] for request in requests}
    with self._lock:
      self._end(lambda episode: episode[0] not in rounds)
      for place, request in enumerate(requests):
        self._submit(request, (place,))
      made: list[Made] = []
      while len(made) < len(requests):
        made += self._poll(None)
    answers = {one.request.episode: one.answer for one in made}
    return [answers[request.episode] for request in requests]

  def submit(self, request: Request, order: tuple[int, ...]) -> None:
    """Puts a call into the queue; the smallest order is made first."""
    with self._lock:
      self._submit(request, order)

  def poll(self, timeout: float | None) -> list[Made]:
    """Complete calls; waits for one up to `timeout` seconds, None: for ever."""
    with self._lock:
      return self._poll(timeout)

  def close(self) -> None:
    """Ends all processes; a second call does nothing."""
    super().close()
    if self._host is not None:
      self._host.close()

  def made_again(self) -> dict[str, int]:
    """Calls that were repeated as their process ended, or made twice."""
    found = {} if self._queue is None else self._queue.counts
    return {name: found.get(name, 0) for name in AGAIN}

  def end(self, episodes: Callable[[tuple[int, int]], bool]) -> None:
    """Those episodes are over; they are closed with later calls."""
    with self._lock:
      self._end(episodes)

  def _submit(self, request, order):
    if self._queue is None:
      self._here.append((order, request))
      return
    r = request
    self._queue.submit(
      Call(
        order=order,
        kind=kind_of(r),
        message=(r.episode, r.example, r.seed, r.actions, r.before),
        episode=r.episode,
        tries=2,  # whoever killed the process, it can be repeated
        source=request,
      )
    )

  def _poll(self, timeout):
    if self._queue is None:
      self._here.sort(key=lambda one: one[0])
      made = [self._made_here(request) for _, request in self._here[:1]]
      del self._here[:1]
    else:
      calls = self._queue.poll(timeout)
      made = [Made(c.source, c.result, c.queued, c.ran) for c in calls]
      for what, how in self._queue.failed_closes:
        self._tally.hear(Answer(None, CLOSE, how), 'environment', what)
      self._queue.failed_closes.clear()
      for call in self._queue.unequal:
        self._warn_of(call)
      self._queue.unequal.clear()
    for one in made:
      request = one.request
      where = (
        f'example {request.example.id}, seed {request.seed}, '
        f'after {len(request.actions)} actions'
      )
      self._tally.hear(one.answer, 'environment: first call', where)
    return made

  def _warn_of(self, call):
    """Names a task that is declared pure and is not."""
    request = call.source
    detail = f'two answers to {request.actions[-1]!r:.300} differ'
    where = f'example {request.example.id}, seed {request.seed}'
    what = f'the trait `pure` of {self._name} is not true'
    self._tally.hear(Answer(None, UNEQUAL, detail), what, where)

  def _made_here(self, request):
    assert self._host is not None
    r, ends, started = request, list(self._ended), time.perf_counter()
    self._ended.clear()
    answer = _answer(
      *self._host.answer(
        r.episode, r.example, r.seed, r.actions, r.before, ends
      )
    )
    return Made(request, answer, ran=time.perf_counter() - started)

  def _end(self, episodes):
    if self._queue is not None:
      self._queue.end(episodes)
    elif self._host is not None:
      self._ended |= {one for one in self._host.live if episodes(one)}


def _check_workers(task):
  """Raises ValueError for a trait that says how calls run and cannot."""
  name, traits = type(task).__name__, task.traits
  if traits.workers not in WORKERS:
    raise ValueError(
      f'{name}: the trait workers = {traits.workers!r} is none of {WORKERS}'
    )
  if traits.workers != 'process' and traits.global_random:
    raise ValueError(
      f'{name}: the trait workers = {traits.workers!r} needs global_random = '
      'False: episodes that share a process may only draw from their own '
      'generators'
    )


def kind_of(request: Request) -> str:
  """RESET or STEP."""
  return STEP if request.actions else RESET


def _is_over(answer):
  """Returns whether the host has ended the episode."""
  reply = answer.reply
  return reply is None or reply['done'] or reply['truncated']


def _same(one, other):
  """Returns whether two answers say the same, if both have come."""
  if one.reply is None or other.reply is None:
    return True
  prints = map(session_host.fingerprint, (one.reply, other.reply))
  return len(set(prints)) == 1


def _parsed(number, kind, reply, detail):
  """(number, Answer), None or Closing instead of an Answer: not yet done."""
  check_breach(kind, detail)
  kinds = (*KINDS, session_host.BUSY, session_host.CLOSING)
  if type(number) is not int or kind not in kinds:
    raise ValueError(f'a reply with number {number!r}, kind {kind!r}')
  if kind == session_host.BUSY:
    return number, None
  if kind == session_host.CLOSING:
    known = None if reply is None else _answer(*reply)
    return number, Closing(known, str(detail))
  return number, _answer(kind, reply, detail)


def _answer(kind, reply, detail):
  check_breach(kind, detail)
  detail = messages.cut(str(detail))
  return Answer(reply if kind == 'ok' else None, kind, detail)
