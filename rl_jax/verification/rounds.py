"""One call of a pool: requests to workers, their time limits, lost workers."""

import collections
from collections.abc import Callable, Sequence
import dataclasses
import json
import math
from multiprocessing import connection as connection_lib
import pickle
import time
from typing import Any

_MAX_CHUNK = 32
_MAX_REPLY_BYTES = 1 << 20  # a worker with a larger reply is killed
_MAX_RESTARTS = 3  # of the nursery in one call, if no sample is to blame
_MAX_DEATHS = 2  # of the nursery while a sample was judged


@dataclasses.dataclass(frozen=True)
class Closing:
  """A worker closes what a request had opened and no other one needs.

  result: of the request that it has now, None: not yet known. what: is closed.
  """

  result: Any
  what: str


def _is_alive(worker):
  """Returns whether what can be read is a message, not the end of the
  worker.
  """
  try:
    worker.connection.recv_bytes(_MAX_REPLY_BYTES)
  except (EOFError, ConnectionError):
    return False
  except OSError:
    pass  # incomplete or too long
  return True


class Round:
  """Hands out requests and checks time limits; `run` gives their results.

  parse: (number, *reply) -> (number, result); result None: the worker is still
    busy with it and gets its time again; a Closing: so it does, and if it fails
    then, the request has the result of the Closing or is handed out again.
    Raises ValueError or TypeError.
  failed: (kind, detail) -> the result of a request that was lost.
  place: request -> a number; those of one number, modulo that of workers, go
    to one worker. None: any.
  tries: of a request whose process ends.
  """

  def __init__(
    self,
    crew: Any,
    samples: Sequence[tuple],
    timeout_seconds: float,
    *,
    parse: Callable[..., tuple[int, Any]],
    failed: Callable[[str, str], Any],
    place: Callable[[int], int] | None = None,
    tries: int = 1,
  ):
    self._crew, self._samples = crew, samples
    self._timeout = timeout_seconds
    self._parse, self._failed, self._place = parse, failed, place
    self._waiting = collections.deque(range(len(samples)))
    self._tries = [tries] * len(samples)
    self._outcomes = [None] * len(samples)
    self._judges = [None] * len(samples)  # the worker that has answered
    self._first = crew.numbers(len(samples))  # number of the first sample
    self.late_strays = 0
    self.failed_closes: list[tuple[str, str]] = []  # what, how
    self._spared: set[int] = set()  # samples that were handed out again
    self._restarts = 0
    self._deaths = collections.Counter()  # of the nursery, by sample
    per_worker = math.ceil(len(samples) / (4 * crew.num_workers))
    self._chunk = max(1, min(per_worker, _MAX_CHUNK))

  def run(self) -> list[Any]:
    """Returns the results, in the order of the requests."""
    try:
      if not self._crew.workers:
        self._restart()
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
      if not worker.pending and (chunk := self._next(i)):
        self._give(worker, chunk)
    return self._waiting or any(w.pending for w in self._crew.workers)

  def _next(self, number):
    """Returns what the worker of that number gets next, [] if there is
    nothing.
    """
    if self._place is None:
      size = min(self._chunk, len(self._waiting))
      return [self._waiting[i] for i in range(size)]
    workers = self._crew.num_workers
    own = [i for i in self._waiting if self._place(i) % workers == number]
    return own[:_MAX_CHUNK]

  def _give(self, worker, chunk):
    if worker.connection.poll():  # a late reply, or its end
      self.late_strays += _is_alive(worker)
      self._replace(worker)
      return
    for i in chunk:
      self._waiting.remove(i)
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
      number, outcome = self._parse(*reply)
    except (EOFError, OSError, ValueError, TypeError, RecursionError) as error:
      self._fail(worker, 'died', f'the worker process ended ({error!r})')
      return
    index = number - self._first
    if index != worker.pending[0]:
      self._stray(worker, index)
      return
    worker.since = time.monotonic()
    worker.closing = outcome if isinstance(outcome, Closing) else None
    if outcome is not None and worker.closing is None:
      self._judged(worker, outcome)

  def _judged(self, worker, outcome):
    index = worker.pending.popleft()
    self._judges[index], self._outcomes[index] = worker, outcome

  def _stray(self, worker, index):
    """Voids the sample that was answered twice, else the one being judged."""
    if 0 <= index < len(self._judges) and self._judges[index] is worker:
      self._outcomes[index] = self._failed('stray', 'it was answered twice')
      self._replace(worker)
    else:
      self._fail(worker, 'stray', 'a reply that was not due')

  def _fail(self, worker, kind, detail):
    """Fails the sample being judged; those after it are queued again.

    None fails if the worker was closing something, see Closing.
    """
    guilty, closing = worker.pending[0], worker.closing
    if closing is not None and guilty not in self._spared:
      self._spared.add(guilty)
      self.failed_closes.append((closing.what, f'{kind}: {detail}'))
      if closing.result is not None:
        self._judged(worker, closing.result)
      self._replace(worker)
      return
    self._tries[guilty] -= 1
    again = kind == 'died' and self._tries[guilty]
    if self._replace(worker) and not again:
      self._waiting.remove(guilty)
      self._outcomes[guilty] = self._failed(kind, detail)

  def _replace(self, worker):
    """Requeues its samples; False if the nursery has ended, too."""
    judged = [w.pending[0] for w in self._crew.workers if w.pending]
    self._requeue(worker)
    try:
      self._crew.replace(worker)
      return True
    except OSError:
      for other in self._crew.workers:
        self._requeue(other)
      self._blame(judged)
      self._restart()
      return False

  def _blame(self, judged):
    """Fails samples that were judged whenever the nursery ended."""
    self._deaths.update(judged)
    for i in judged:
      if self._deaths[i] >= _MAX_DEATHS and i in self._waiting:
        self._waiting.remove(i)
        self._outcomes[i] = self._failed('died', 'all worker processes ended')
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
    self._waiting.extendleft(reversed(worker.pending))
    worker.pending.clear()
