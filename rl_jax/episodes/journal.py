"""Answers of episodes, each in a journal before it is used.

Files and lines are those of `verification.journal`.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import os
from typing import Any

from rl_jax.episodes.calls import (
  Answer,
  Calls,
  Request,
  SessionCalls,
  outcome_of,
)
from rl_jax.verification import former_journal, sessions
from rl_jax.verification.journal import (
  AnswerJournal,
  KeptAnswer,
  Key,
  NumberedRounds,
  crc_of,
)

# Of the examples of one split: answers by the example's id, and by what
# partners have answered before.
Kept = dict[tuple[int, tuple[str, ...]], sessions.Answer]


class JournaledCalls(Calls):
  """Calls whose answers are in a journal before they are returned.

  Those that it knows are answered by the next `poll`, without a call.
  """

  def __init__(self, calls: Calls, journal: AnswerJournal):
    self._calls, self._journal = calls, journal
    self._known: list[Answer] = []

  def submit(self, request: Request) -> None:
    said = self.known(request)
    if said is None:
      self._calls.submit(request)
      return
    result = sessions.Answer(said.reply, said.outcome, said.detail)
    self._known.append(Answer(request, outcome_of(result), result))

  def poll(self, timeout: float | None) -> list[Answer]:
    found, self._known = self._known, []
    if not found:
      found = self._calls.poll(timeout)
      for answer in found:
        self.keep(answer)
    return found

  def known(self, request: Request) -> KeptAnswer | None:
    """The answer in the journal, if it has one."""
    return self._journal.known(_key(request))

  def keep(self, answer: Answer) -> None:
    """Writes an answer."""
    result = answer.reply
    said = KeptAnswer(
      result.kind, result.reply, result.detail, answer.queued, answer.ran
    )
    self._journal.add(_key(answer.request), said)

  def close(self) -> None:
    self._calls.close()
    self._journal.close()


def _key(request):
  serial, sample, turn, kind = request.key
  return Key(serial, sample, turn, kind, request.crc)


class NumberedCalls(NumberedRounds):
  """The calls of a pool in numbered rounds, of which each waits for all.

  Arguments: see NumberedRounds.
  """

  def __init__(
    self,
    pool: sessions.SessionPool,
    workdir: str | os.PathLike[str] | None = None,
    task: str = '',
    writer: Any = None,
    *,
    process: int = 0,
    former: str = former_journal.FILE,
    every_line: bool = False,
  ):
    super().__init__(
      pool,
      workdir,
      task,
      writer,
      process=process,
      former=former,
      every_line=every_line,
    )
    self._again: dict[str, int] = {}
    self._calls = JournaledCalls(SessionCalls(pool), self._journal)
    self._streams: dict[int, int] = {}  # rounds of episodes, by number
    self._aside: list[Answer] = []  # of streams, which came during `ask`
    self.heard: Callable[[list[Answer]], None] | None = None  # of each answer

  def ask(
    self,
    requests: Sequence[sessions.Request],
    kept: Kept | None = None,
  ) -> list[sessions.Answer]:
    """The answers, in order; requests are of different episodes of one round.

    kept: answers by example and actions, which are used in place of calls; the
      new ones that succeed are put there.
    """
    number, self._number = self._number, self._number + 1
    inputs = [[r.example.id, r.seed, *r.actions] for r in requests]
    former = self._formerly(number, inputs)
    if former is not None:
      return [sessions.Answer(*one) for one in former]
    found: dict[int, sessions.Answer] = {}  # by place
    rounds = {request.episode[0] for request in requests}
    rounds |= {*self._streams.values()}
    self.pool.end(lambda episode: episode[0] not in rounds)
    for place, request in enumerate(requests):
      one = Request(
        serial=number,
        sample=place,
        turn=len(request.actions),
        kind=sessions.kind_of(request),
        payload=request,
        crc=crc_of(inputs[place]),
      )
      known = (kept or {}).get((request.example.id, request.actions))
      if known is None or self._calls.known(one):
        self._calls.submit(one)
      else:
        self._calls.keep(Answer(one, 'ok', known))
        found[place] = known
    while len(found) < len(requests):
      for answer in self._polled(None):
        if answer.request.serial == number:
          found[answer.request.sample] = answer.reply
        else:
          self._aside.append(answer)
    for place, request in enumerate(requests):
      if kept is not None and found[place].error is None:
        kept[request.example.id, request.actions] = found[place]
    return [found[place] for place in range(len(requests))]

  def stream(self, episodes: int) -> int:
    """The number of a new round, whose calls are made one by one.

    It is the serial of each call. episodes: the round in the names of its
    episodes, which stay until `over`.
    """
    number, self._number = self._number, self._number + 1
    self._streams[number] = episodes
    return number

  def submit(self, request: Request) -> None:
    """Puts a call of a stream into the queue."""
    self._calls.submit(request)

  def poll(self, timeout: float | None) -> list[Answer]:
    """Answers of all streams; see Calls."""
    found, self._aside = self._aside, []
    return found or self._polled(timeout)

  def _polled(self, timeout):
    found = self._calls.poll(timeout)
    if self.heard is not None:
      self.heard(found)
    return found

  def known(self, request: Request) -> sessions.Answer | None:
    """The journal's answer of a call of a stream that no pool makes."""
    said = self._calls.known(request)
    if said is None:
      return None
    return sessions.Answer(said.reply, said.outcome, said.detail)

  def keep(self, answer: Answer) -> None:
    """Writes the answer of such a call."""
    self._calls.keep(answer)

  def over(self, number: int) -> None:
    """The episodes of a stream are over."""
    episodes = self._streams.pop(number)
    self.pool.end(lambda episode: episode[0] == episodes)

  @contextlib.contextmanager
  def repeating(self, number: int) -> Iterator[None]:
    """Rounds inside have the numbers from `number` on, once more."""
    before, self._number = self._number, number
    try:
      yield
    finally:
      self._number = max(before, self._number)

  def made_again(self) -> dict[str, int]:
    """Calls since the last time that were repeated or made twice."""
    known, self._again = self._again, self.pool.made_again()
    return {name: n - known.get(name, 0) for name, n in self._again.items()}
