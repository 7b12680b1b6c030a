"""Calls whose answers come in a seeded order, for tests of the queue."""

from collections.abc import Callable
import heapq
import random
from typing import Any

from rl_jax.episodes.calls import Answer, Calls, Request


class DelayedCalls(Calls):
  """Answers come after drawn delays of a clock that only `poll` moves.

  make: request -> (outcome, reply), called as the answer comes. delay: draws
  seconds of the random generator of the seed. most: calls that run at once;
  others wait, oldest serial first. At most one instant's answers a poll.
  """

  def __init__(
    self,
    make: Callable[[Request], tuple[str, Any]],
    seed: int = 0,
    delay: Callable[[random.Random], float] = random.Random.random,
    most: int = 1 << 30,
  ):
    self._make, self._delay, self._most = make, delay, most
    self._random = random.Random(seed)
    self._waiting: list[tuple] = []  # heap of (key, since, request)
    self._running: list[tuple] = []  # heap of (end, tie, start, since, request)
    self._ties = 0
    self.now = 0.0
    self.made: list[Request] = []

  def submit(self, request: Request) -> None:
    self._ties += 1
    key = (*request.key, self._ties)
    heapq.heappush(self._waiting, (key, self.now, request))
    self._start()

  def poll(self, timeout: float | None) -> list[Answer]:
    if not self._running:
      return []
    first = self._running[0][0]
    if timeout is not None and first > self.now + timeout:
      self.now += timeout
      return []
    self.now, found = max(self.now, first), []
    while self._running and self._running[0][0] <= self.now:
      _, _, start, since, request = heapq.heappop(self._running)
      self.made.append(request)
      outcome, reply = self._make(request)
      times = (start - since, self.now - start)
      found.append(Answer(request, outcome, reply, *times))
    self._start()
    return found

  def close(self) -> None:
    self._waiting.clear()
    self._running.clear()

  def _start(self):
    while self._waiting and len(self._running) < self._most:
      _, since, request = heapq.heappop(self._waiting)
      self._ties += 1
      end = self.now + max(0.0, self._delay(self._random))
      heapq.heappush(self._running, (end, self._ties, self.now, since, request))
