"""The queue of calls to worker processes: oldest first, limits, lost workers.

`submit` never waits and `poll` returns calls that are complete. What a call
returns depends on its message only; workers, limits and time decide when.
"""

import bisect
import collections
from collections.abc import Callable, Iterator, Mapping
import dataclasses
import itertools
import json
import math
from multiprocessing import connection as connection_lib
import operator
import pickle
import time
from typing import Any

from rl_jax.verification.processes import Crew, Worker
from rl_jax.verification.window import Window

_MAX_CHUNK = 32
_CHUNK_SECONDS = 0.01  # what a worker may be given at once, if it grows
MAX_REPLY_BYTES = 1 << 20  # a worker with a larger reply is killed
_MAX_RESTARTS = 3  # of the nursery without an answer, if no call is to blame
_MAX_DEATHS = 2  # of the nursery while a call was made
_PATIENCE = 0.02  # seconds before an episode leaves a busy worker
_HEDGED_FROM = 8  # calls of a kind, of which the mean is known then
COPY = 'copy'  # at the end of the name that a copy's episode has for its worker


@dataclasses.dataclass(frozen=True)
class Closing:
  """A worker closes what a request had opened and no other one needs.

  result: of the request that it has now, None: not yet known. what: is closed.
  """

  result: Any
  what: str


@dataclasses.dataclass(eq=False)
class Call:
  """A call and, once it is complete, its result.

  order: the smallest is made first. message: what the worker is sent. episode:
  whose calls go to one worker, None: any. tries: processes that may end at it.
  source: what the call was made of. queued, ran: seconds that it waited, and
  that it took.
  """

  order: tuple[int, ...]
  kind: str
  message: tuple[Any, ...]
  episode: Any = None
  tries: int = 1
  source: Any = None
  result: Any = None
  queued: float = 0.0
  ran: float = 0.0
  submitted: float = 0.0
  waits: bool = False
  spared: bool = False  # it was made again, see Closing
  answered: Worker | None = None
  deaths: int = 0  # of the nursery while it was made
  done: bool = False
  twin: 'Call | None' = None  # the same call, made once more
  is_copy: bool = False  # it is the second of the two
  # Of calls of a worker that makes several at once:
  began: float = 0.0
  cancelled: float = 0.0  # when
  is_confirmed: bool = False  # the worker has heard that it was cancelled
  is_alone: bool = False  # no other one runs beside it


@dataclasses.dataclass
class _Home:
  """The worker of an episode, and the seconds that its calls have taken."""

  worker: Worker
  spent: float = 0.0


@dataclasses.dataclass(frozen=True)
class Rules:
  """The rules by which a queue reads replies, and what it may do.

  parse: (number, *reply) -> (number, result); result None: the worker is still
    busy with it and gets its time again; a Closing: so it does, and if it fails
    then, the call has the result of the Closing or is made again. Raises
    ValueError or TypeError.
  failed: (kind, detail) -> the result of a call that was lost.
  over: result -> whether its episode has ended.
  same: (result, result) -> whether two answers of a call are the same.
  movable: whether another worker may repeat an episode.
  hedged: whether a call that takes more than twice the mean of its kind is made
    once more, of which the first answer counts.
  limits: calls of a kind that run at once. rates: that begin in a second.
  """

  parse: Callable[..., tuple[int, Any]]
  failed: Callable[[str, str], Any]
  over: Callable[[Any], bool] = bool
  same: Callable[[Any, Any], bool] = operator.eq
  movable: bool = False
  hedged: bool = False
  limits: Mapping[str, int] = dataclasses.field(default_factory=dict)
  rates: Mapping[str, float] = dataclasses.field(default_factory=dict)


class CallQueue:
  """Hands out calls to the workers of a crew and checks their time limits.

  A crew that grows begins with one worker. It has more where calls wait while
  those that run leave the processors idle, see Window.
  """

  def __init__(self, crew: Crew, timeout_seconds: float, rules: Rules):
    self._crew, self._timeout, self._rules = crew, timeout_seconds, rules
    self._waiting: list[Call] = []  # sorted
    self._kinds: collections.Counter[str] = collections.Counter()  # of them
    self._done: list[Call] = []
    self._homes: dict[Any, _Home] = {}
    self._numbers: dict[int, Call] = {}  # of calls that may be answered
    self._window = Window(crew.num_workers) if crew.grows else None
    self._next: dict[str, float] = {}  # when a call of a kind may begin
    self._seconds = 0.0  # that a call takes, the mean of the newest
    self._taken: dict[str, tuple[int, float]] = {}  # calls, seconds, by kind
    self._left = 0  # calls that are not complete
    self._restarts = 0
    self.counts: collections.Counter[str] = collections.Counter()
    self.unequal: list[Call] = []  # of which two answers differ
    self.late_strays = 0
    self.failed_closes: list[tuple[str, str]] = []  # what, how

  def submit(self, call: Call) -> None:
    """Puts a call into the queue."""
    call.submitted = time.monotonic()
    self._left += 1
    self._wait(call)

  def poll(self, timeout: float | None) -> list[Call]:
    """Complete calls; waits for one up to `timeout` seconds, None: for ever.

    Raises: RuntimeError if no process can be started. After any error the
      calls that were not complete are forgotten, with all processes.
    """
    end = math.inf if timeout is None else time.monotonic() + timeout
    try:
      if self._waiting and not self._crew.workers:
        self._restart()
      while not self._done and self._left:
        self._hand_out()
        if self._rules.hedged:
          self._hedge()
        left = max(0.0, end - time.monotonic())
        self._listen(left)
        if not left:
          break
    except BaseException:
      self._forget()
      raise
    found, self._done = self._done, []
    return found

  def run(self, calls: list[Call], heard: Callable[[Call], None]) -> list[Any]:
    """The results of these calls, in order; no others are in the queue.

    heard: of each call when it is complete, and once more if it has another
    result in the end, as it was answered twice.
    """
    for call in calls:
      self.submit(call)
    results: dict[int, Any] = {}
    while len(results) < len(calls):
      for call in self.poll(None):
        results[id(call)] = call.result
        try:
          heard(call)
        except BaseException:
          self._forget()
          raise
    self._numbers.clear()
    for call in calls:
      if call.result is not results[id(call)]:
        heard(call)
    return [call.result for call in calls]

  def _forget(self):
    """Ends all processes: busy ones would reply to the next call."""
    self._crew.close()
    self._waiting, self._done, self._left = [], [], 0
    self._kinds.clear()
    self._homes.clear()
    self._restarts = 0

  def end(self, episodes: Callable[[Any], bool]) -> None:
    """Ends the episodes of which that is true, with the next calls."""
    for episode in [x for x in self._homes if episodes(x)]:
      self._leave(episode)

  def _wait(self, call):
    call.waits = True
    bisect.insort(self._waiting, call, key=_order)
    self._kinds[call.kind] += 1

  def _drop(self, call):
    """The call waits no longer."""
    call.waits = False
    self._waiting.remove(call)
    self._kinds[call.kind] -= 1

  def _busy(self):
    return [worker for worker in self._crew.workers if worker.pending]

  def _leave(self, episode):
    """The worker of an episode is to close it before its next call."""
    worker = self._homes.pop(episode).worker
    worker.episodes.discard(episode)
    worker.ends.append(episode)

  def _hand_out(self):
    """Gives idle workers what they can make, the oldest first."""
    now = time.monotonic()
    running = self._running()
    held: set[str] = set()  # kinds that are at their limit
    for call in list(self._waiting):
      if self._window and running.total() >= self._window.size:
        self._window.look(self._busy(), now)
        return
      if not call.waits:
        continue
      if not self._is_due(call.kind, running, now):
        held.add(call.kind)
        if all(kind in held for kind, n in self._kinds.items() if n):
          return
        continue
      worker = self._worker_for(call, now)
      if worker is not None and self._give(worker, self._chunk(call)):
        running[call.kind] += 1
      if self._all_busy():
        return

  def _running(self) -> collections.Counter[str]:
    """Calls that run, by kind."""
    return collections.Counter(worker.kind for worker in self._busy())

  def _all_busy(self):
    """Returns whether no worker is idle and none can be added."""
    workers = self._crew.workers
    full = len(workers) >= self._crew.num_workers
    return full and not any(map(self._idle, workers))

  def _idle(self, worker: Worker) -> bool:
    """Returns whether the worker can make a call now."""
    return not worker.pending

  def _is_due(self, kind, running, now):
    most = self._rules.limits.get(kind, math.inf)
    return running[kind] < most and self._next.get(kind, 0.0) <= now

  def _worker_for(self, call, now):
    """An idle worker that makes the call next, or None."""
    home = self._homes.get(call.episode)
    if home is not None and not call.is_copy:
      if not home.worker.pending:
        return home.worker
      # Repeating it costs what it has taken: twice that is the most it loses.
      patience = max(_PATIENCE, home.spent)
      if not self._rules.movable or now - call.submitted < patience:
        return None
    idle = [worker for worker in self._crew.workers if not worker.pending]
    found = min(idle, key=lambda w: len(w.episodes), default=None)
    crowded = found is None or (found.episodes and not self._rules.movable)
    is_free = call.episode is None or not crowded
    if found is not None and (is_free or not self._crew.can_grow()):
      return found
    return self._added() if self._crew.can_grow() else None

  def _added(self):
    """A new worker, None if there can be none."""
    try:
      return self._crew.add()
    except OSError:
      self._revive([next(iter(w.pending.values())) for w in self._busy()])
      return None

  def _chunk(self, call):
    """The call and those like it that are given to its worker at once."""
    if call.episode is not None:
      return [call]
    count = math.ceil(len(self._waiting) / (4 * self._crew.num_workers))
    if self._window is not None and self._seconds:
      count = max(count, int(_CHUNK_SECONDS / self._seconds))
    if call.kind in self._rules.rates:
      count = 1
    place = self._waiting.index(call)
    found = self._waiting[place : place + min(max(count, 1), _MAX_CHUNK)]
    return [x for x in found if x.kind == call.kind and x.episode is None]

  def _give(self, worker, calls):
    """Returns whether the worker has them."""
    if not worker.pending and worker.connection.poll():  # late, or its end
      self._late(worker)
      self._replace(worker)
      return False
    messages, now = [], time.monotonic()
    if not worker.pending:
      self._forget_numbers(worker)
    for number, call in enumerate(calls, self._crew.numbers(len(calls))):
      self._drop(call)
      self._numbers[number] = worker.given[number] = call
      worker.pending[number] = call
      messages.append((number, *call.message, *self._at_home(call, worker)))
    worker.since, worker.kind = now, calls[0].kind
    calls[0].queued = now - calls[0].submitted
    if (rate := self._rules.rates.get(worker.kind)) is not None:
      self._next[worker.kind] = now + 1.0 / rate
    return self._send(worker, messages)

  def _send(self, worker, messages):
    """Returns whether the worker lives."""
    try:
      worker.connection.send_bytes(pickle.dumps(messages))
    except OSError:
      # It died while idle, or does not read: these calls did not cause it.
      self._replace(worker)
      return False
    return True

  def _at_home(self, call, worker):
    """Returns (episodes to end first,) for a call of an episode, else ()."""
    if call.episode is None:
      return ()
    if call.is_copy:  # the episode lives elsewhere
      worker.ends.append(call.message[0])
      return ([],)
    home = self._homes.get(call.episode)
    if home is not None and home.worker is not worker:
      self._leave(call.episode)
      home = None
    if home is None:
      self._homes[call.episode] = _Home(worker)
      worker.episodes.add(call.episode)
    ends, worker.ends = worker.ends, []
    # It may have left and come back.
    return ([x for x in ends if x not in worker.episodes],)

  def _listen(self, most):
    """Reads replies; waits for one until something else is due."""
    busy = {w.connection: w for w in self._busy()}
    now = time.monotonic()
    ends = [worker.since + self._timeout for worker in busy.values()]
    if self._waiting:
      ends += [when for when in self._next.values() if when > now]
      if busy and self._window is not None:
        ends.append(now + self._window.seconds)
      elif busy and self._rules.movable:
        ends.append(now + _PATIENCE)
    if self._rules.hedged:
      ends += [x for w in busy.values() if (x := self._next_slow(w)) > now]
    wait = max(0.0, min([now + most, *ends]) - now)
    if not busy:
      time.sleep(min(wait, 1.0))
      return
    for ready in connection_lib.wait(
      list(busy), None if wait == math.inf else wait
    ):
      worker = busy.pop(ready)
      if worker.pending:  # else a restart has requeued its calls
        self._read(worker)
    late = time.monotonic() - self._timeout
    for worker in busy.values():
      overdue = worker.pending and worker.since <= late
      if overdue and not worker.connection.poll():
        self._fail(worker, 'timeout', f'killed after {self._timeout} seconds')

  def _read(self, worker):
    try:
      reply = json.loads(worker.connection.recv_bytes(MAX_REPLY_BYTES))
      number, outcome = self._rules.parse(*reply)
    except (EOFError, OSError, ValueError, TypeError, RecursionError) as error:
      self._fail(worker, 'died', f'the worker process ended ({error!r})')
      return
    if number != next(iter(worker.pending)):
      self._stray(worker, number)
      return
    now = time.monotonic()
    worker.closing = outcome if isinstance(outcome, Closing) else None
    if outcome is None or worker.closing is not None:
      worker.since = now  # it gets its time again
    else:
      self._answered(worker, outcome, now)

  def _answered(self, worker, outcome, now, number=None):
    """number: of the call, None: the first one."""
    first = next(iter(worker.pending)) if number is None else number
    call = worker.pending.pop(first)
    call.ran = now - call.submitted - call.queued
    self._seconds = 0.9 * self._seconds + 0.1 * call.ran
    count, seconds = self._taken.get(call.kind, (0, 0.0))
    self._taken[call.kind] = count + 1, seconds + call.ran
    worker.since, self._restarts = now, 0
    if number is None and worker.pending:
      following = next(iter(worker.pending.values()))
      following.queued = now - following.submitted
    call.answered = worker
    home = self._homes.get(call.episode)
    if home is not None and home.worker is worker and not call.is_copy:
      home.spent += call.ran
      if self._rules.over(outcome):
        self._homes.pop(call.episode)
        home.worker.episodes.discard(call.episode)
    self._finish(call, outcome)

  def _finish(self, call, outcome):
    """The call is complete, or its copy; the first of the two counts."""
    if call.twin is not None and call.twin.done:
      if not self._rules.same(outcome, call.twin.result):
        self.unequal.append(call)
      return
    call.result, call.done = outcome, True
    if call.is_copy:
      copy, call = call, call.twin
      call.result, call.done = outcome, True
      call.ran = copy.queued + copy.ran - call.queued
      if call.waits:  # its process has ended
        self._drop(call)
    self._left -= 1
    self._done.append(call)

  def _made_now(self, worker: Worker) -> Iterator[tuple[Call, float]]:
    """The calls that a worker makes, and when they began, the oldest first."""
    yield next(iter(worker.pending.values())), worker.since

  def _slow_ones(self, worker: Worker) -> Iterator[tuple[Call, float]]:
    """Calls without a copy, and when each has taken two means of its kind."""
    for call, began in self._made_now(worker):
      count, seconds = self._taken.get(call.kind, (0, 0.0))
      is_known = count >= _HEDGED_FROM and call.episode is not None
      if is_known and call.twin is None:
        yield call, began + max(_PATIENCE, 2.0 * seconds / count)

  def _next_slow(self, worker: Worker) -> float:
    """When the next call of a worker is slow."""
    return next((when for _, when in self._slow_ones(worker)), math.inf)

  def _hedge(self):
    """Makes calls that are slow once more, where a worker is free.

    Copies keep the limits and rates of their kind, too.
    """
    now, running = time.monotonic(), self._running()
    slow = [
      call
      for worker in self._busy()
      for call, _ in itertools.takewhile(
        lambda one: one[1] <= now, self._slow_ones(worker)
      )
    ]
    for first in slow:
      if not self._is_due(first.kind, running, now):
        continue
      episode, *rest = first.message
      copy = dataclasses.replace(
        first,
        # Another one for its worker, which may have the episode itself.
        message=((*episode, COPY), *rest),
        is_copy=True,
        twin=first,
        waits=False,
      )
      free = self._worker_for(copy, now)
      if free is None:
        return
      self._wait(copy)
      first.twin = copy
      given = self._give(free, [copy])
      running[first.kind] += given
      self.counts['hedged'] += given

  def _late(self, worker):
    """Counts a reply that an idle worker has sent; it voids its own call."""
    try:
      number, *_ = json.loads(worker.connection.recv_bytes(MAX_REPLY_BYTES))
    except (EOFError, ConnectionError):
      return
    except (OSError, ValueError, TypeError, RecursionError):
      number = None  # incomplete or too long
    call = self._numbers.get(number) if type(number) is int else None
    if call is not None and call.episode is None and call.answered is worker:
      call.result = self._rules.failed('stray', 'it was answered twice')
    else:
      self.late_strays += 1

  def _stray(self, worker, number):
    """Voids the call that was answered twice, else the one being made."""
    call = self._numbers.get(number)
    if call is not None and call.answered is worker:
      call.result = self._rules.failed('stray', 'it was answered twice')
      self._replace(worker)
    else:
      self._fail(worker, 'stray', 'a reply that was not due')

  def _fail(self, worker, kind, detail):
    """Fails the call being made; those after it are queued again.

    None fails if the worker was closing something, see Closing.
    """
    guilty, closing = next(iter(worker.pending.values())), worker.closing
    now = time.monotonic()
    if closing is not None and not guilty.spared:
      guilty.spared = True
      self.failed_closes.append((closing.what, f'{kind}: {detail}'))
      if closing.result is not None:
        self._answered(worker, closing.result, now)
      self._replace(worker)
      return
    if guilty.twin is not None and (guilty.is_copy or guilty.twin.done):
      self._replace(worker)  # another one has answered, or still may
      return
    guilty.tries -= 1
    again = kind == 'died' and guilty.tries
    self.counts['retries'] += bool(again)
    guilty.ran = now - guilty.submitted - guilty.queued
    if self._replace(worker) and not again:
      self._lose(guilty, kind, detail)

  def _forsake(self, call):
    """Does not make a copy again; the other one may get another copy."""
    if not call.done:
      call.twin.twin = None

  def _lose(self, call, kind, detail):
    self._drop(call)
    self._finish(call, self._rules.failed(kind, detail))

  def _replace(self, worker):
    """Requeues its calls; False if the nursery has ended, too."""
    made = [next(iter(w.pending.values())) for w in self._busy()]
    self._requeue(worker)
    try:
      self._crew.replace(worker)
      return True
    except OSError:
      self._revive(made)
      return False

  def _revive(self, made):
    """Starts all processes again as the nursery has ended; made: calls."""
    for worker in self._crew.workers:
      self._requeue(worker)
    self._blame(made)
    self._restart()

  def _blame(self, made):
    """Fails calls that were being made whenever the nursery ended."""
    for call in made:
      call.deaths += 1
      if call.deaths >= _MAX_DEATHS and call in self._waiting:
        self._lose(call, 'died', 'all worker processes ended')
        self._restarts = 0

  def _restart(self):
    """New processes, again if these are killed while they start."""
    error = None
    while True:
      self._restarts += 1
      if self._restarts > _MAX_RESTARTS:
        raise RuntimeError(
          f'the verifier processes ended {self._restarts} times in one call: '
          'is the machine out of memory?'
        ) from error
      try:
        self._crew.restart()
        return
      except (OSError, RuntimeError) as found:  # the task was loaded before
        error = found

  def _requeue(self, worker):
    """Its calls wait again, and its episodes have no process."""
    self._forget_numbers(worker)
    for call in worker.pending.values():
      if call.is_copy:
        self._forsake(call)
      elif not call.done:
        self._wait(call)
    worker.pending.clear()
    for episode in worker.episodes:
      self._homes.pop(episode)
    worker.episodes.clear()

  def _forget_numbers(self, worker):
    for number in worker.given:
      self._numbers.pop(number, None)
    worker.given.clear()


def _order(call):
  return call.order
