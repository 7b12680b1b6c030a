"""The queue of calls to workers that make many calls at the same time."""

import collections
from collections.abc import Iterator
import json
import math
from multiprocessing import connection as connection_lib
import pickle
import time
from typing import Any

from rl_jax.verification import concurrent_host
from rl_jax.verification.call_queue import (
  MAX_REPLY_BYTES,
  Call,
  CallQueue,
  Rules,
)
from rl_jax.verification.processes import Crew, Worker

CANCEL_SECONDS = 2.0  # in which a call that is cancelled has to end
_MOST = 4096  # calls of a worker at once


class ConcurrentQueue(CallQueue):
  """Calls of a worker end in any order.

  A call beyond the time limit is cancelled. If it has not ended after
  CANCEL_SECONDS its process is killed: a call that was cancelled while others
  were heard is to blame, and fails. Where the process was silent, or has ended
  by itself, any of its calls may be to blame: each of them is made once more
  with a process of its own meanwhile, where only the guilty one fails.

  A look at the queue costs no more with thousands of calls that wait in their
  workers than with a few: calls are counted as they come and go, and as each
  worker has them in the order in which their time ends, the first ones suffice.
  """

  def __init__(self, crew: Crew, timeout_seconds: float, rules: Rules):
    super().__init__(crew, timeout_seconds, rules)
    self._made: collections.Counter[str] = collections.Counter()  # that run
    # What workers are sent before the next look, in one message each.
    self._unsent: dict[Worker, list[tuple[Any, ...]]] = {}

  def _running(self) -> collections.Counter[str]:
    return self._made.copy()

  def _idle(self, worker: Worker) -> bool:
    if len(worker.pending) == 1:  # one that is_alone has no other beside it
      (call,) = worker.pending.values()
      return not call.is_alone
    return len(worker.pending) < _MOST

  def _worker_for(self, call: Call, now: float) -> Worker | None:
    if call.is_alone:
      return next((w for w in self._crew.workers if not w.pending), None)
    home = None if call.is_copy else self._homes.get(call.episode)
    if home is not None and not self._rules.movable:
      return home.worker if self._idle(home.worker) else None
    if home is not None and self._idle(home.worker):
      return home.worker
    idle = [worker for worker in self._crew.workers if self._idle(worker)]
    return min(idle, key=_episodes, default=None)

  def _made_now(self, worker: Worker) -> Iterator[tuple[Call, float]]:
    for call in worker.pending.values():
      if not (call.cancelled or call.is_alone):
        yield call, call.began

  def _chunk(self, call: Call) -> list[Call]:
    return [call]

  def _give(self, worker: Worker, calls: list[Call]) -> bool:
    given = super()._give(worker, calls)
    if given:
      (call,) = calls
      call.began, call.cancelled = time.monotonic(), 0.0
      call.is_confirmed = False
      self._made[call.kind] += 1
    return given

  def _send(self, worker: Worker, messages: list[tuple[Any, ...]]) -> bool:
    self._unsent.setdefault(worker, []).extend(messages)
    return True

  def _answered(
    self, worker: Worker, outcome: Any, now: float, number: int | None = None
  ) -> None:
    assert number is not None
    self._made[worker.pending[number].kind] -= 1
    # Of calls of episodes nothing is asked once they are answered.
    self._numbers.pop(number, None)
    worker.given.pop(number, None)
    super()._answered(worker, outcome, now, number)

  def _requeue(self, worker: Worker) -> None:
    self._made.subtract(call.kind for call in worker.pending.values())
    self._unsent.pop(worker, None)
    super()._requeue(worker)

  def _forget(self) -> None:
    super()._forget()
    self._made.clear()
    self._unsent.clear()

  def _listen(self, most: float) -> None:
    while self._unsent:
      if not super()._send(*self._unsent.popitem()):
        return
    now = time.monotonic()
    busy = {w.connection: w for w in self._busy()}
    ends = [end for w in busy.values() for _, _, end in self._first_ends(w)]
    ends += [x for x in self._next.values() if x > now and self._waiting]
    if self._rules.hedged:
      ends += [x for w in busy.values() if (x := self._next_slow(w)) > now]
    wait = max(0.0, min([now + most, *ends]) - now)
    if not busy:
      time.sleep(min(wait, 1.0))
      return
    limit = None if wait == math.inf else wait
    for ready in connection_lib.wait(list(busy), limit):
      worker = busy[ready]
      while worker.pending and worker in self._crew.workers:
        self._read(worker)
        if worker.connection.closed or not worker.connection.poll():
          break
    now = time.monotonic()
    for worker in self._busy():
      late = []
      for number, call, end in self._first_ends(worker, now):
        late += [(number, call)] * (end <= now)
      self._overdue(worker, late, now)

  def _first_ends(
    self, worker: Worker, until: float = -math.inf
  ) -> Iterator[tuple[int, Call, float]]:
    """(number, call, when something is to happen to it), if it has not ended.

    The first ones of a worker, up to one that was not cancelled and has time
    after `until`: those after it have more.
    """
    for number, call in worker.pending.items():
      if call.cancelled:
        yield number, call, call.cancelled + CANCEL_SECONDS
        continue
      end = call.began + self._timeout
      yield number, call, end
      if end > until:
        return

  def _overdue(self, worker, late, now):
    for number, call in late:
      if not call.cancelled:
        call.cancelled = now
        message = pickle.dumps([(number, concurrent_host.CANCEL)])
        try:
          worker.connection.send_bytes(message)
        except OSError:
          self._kill(worker, [call], 'died', 'the worker process ended')
          return
        continue
      seconds = f'killed after {self._timeout} seconds'
      guilty = [c for _, c in late if c.cancelled and c.is_confirmed]
      self._kill(worker, guilty, 'timeout', seconds)
      return

  def _read(self, worker: Worker) -> None:
    try:
      reply = json.loads(worker.connection.recv_bytes(MAX_REPLY_BYTES))
      number, outcome = self._rules.parse(*reply)
    except (EOFError, OSError, ValueError, TypeError, RecursionError) as error:
      detail = f'the worker process ended ({error!r})'
      self._kill(worker, [], 'died', detail)
      return
    call = worker.pending.get(number)
    if call is None:
      self._kill(worker, [], 'stray', 'a reply that was not due')
    elif outcome is None:
      call.is_confirmed = True
    else:
      self._answered(worker, outcome, time.monotonic(), number)

  def _kill(self, worker, guilty, kind, detail):
    """Replaces a worker; the guilty calls fail, others are made again."""
    calls = list(worker.pending.values())
    if not guilty and len(calls) == 1 and calls[0].is_alone:
      guilty = calls
    suspects = [] if guilty else calls
    self._replace(worker)
    for call in guilty:
      if call.waits:
        self._lose(call, kind, detail)
    for call in suspects:
      call.is_alone = True
      self.counts['retries'] += 1


def _episodes(worker: Worker) -> int:
  return len(worker.episodes)
