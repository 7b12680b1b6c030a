"""The queue of all that an episode waits for outside of the device.

Resets and steps of environments, tools, rewards, judges and partners are calls:
`submit` never waits, `poll` returns what is complete. Answers come in any
order, which may decide when an episode continues and never what it says.
"""

import abc
import dataclasses
from typing import Any

from rl_jax.verification import sessions

KINDS = ('reset', 'step', 'tool', 'reward', 'judge', 'partner')
OUTCOMES = ('ok', 'invalid', 'timeout', 'failed')


@dataclasses.dataclass(frozen=True)
class Request:
  """One call for a row of a group.

  serial: of the group; calls of older groups are made first. sample: of it.
  turn: of the episode, 0 for its reset. kind: of KINDS. payload: what the
  worker needs; of a reset and a step a `verification.sessions.Request`. crc:
  CRC-32 of all that the answer may depend on.
  """

  serial: int
  sample: int
  turn: int
  kind: str
  payload: Any = None
  crc: int = 0

  @property
  def key(self) -> tuple[int, int, int, str]:
    """A key that no other call of the run has."""
    return self.serial, self.sample, self.turn, self.kind


@dataclasses.dataclass(frozen=True)
class Answer:
  """The result of a call.

  outcome: of OUTCOMES; 'failed': an error, a lost process or a mismatch. reply:
  what the kind of call returns; of a reset and a step always a
  `verification.sessions.Answer`, with the kind of failure and its message.
  queued, ran: seconds before and during the call; 0 for one that is known.
  """

  request: Request
  outcome: str
  reply: Any
  queued: float = 0.0
  ran: float = 0.0


class Calls(abc.ABC):
  """Base of queues of calls."""

  @abc.abstractmethod
  def submit(self, request: Request) -> None:
    """Puts a call into the queue; returns at once."""

  @abc.abstractmethod
  def poll(self, timeout: float | None) -> list[Answer]:
    """The answers that have come since, in the order of their arrival.

    Waits for the first one up to `timeout` seconds, None: for ever. [] at the
    limit, and at once if no call is left.
    """

  @abc.abstractmethod
  def close(self) -> None:
    """Ends all calls; a second time does nothing."""


class SessionCalls(Calls):
  """Resets and steps of episodes of a pool; at most one of an episode at once.

  An episode that does not end by itself is ended by `end`.
  """

  def __init__(self, pool: sessions.SessionPool):
    self._pool = pool
    self._open: dict[tuple[int, int], Request] = {}  # by the pool's episode

  def submit(self, request: Request) -> None:
    self._open[request.payload.episode] = request
    self._pool.submit(request.payload, request.key[:3])

  def poll(self, timeout: float | None) -> list[Answer]:
    return [
      Answer(
        self._open.pop(one.request.episode),
        outcome_of(one.answer),
        one.answer,
        one.queued,
        one.ran,
      )
      for one in self._pool.poll(timeout)
    ]

  def end(self, episode: tuple[int, int]) -> None:
    """The policy has ended the episode, named as in its payloads."""
    self._pool.end(lambda one: one == episode)

  def close(self) -> None:
    """The pool is closed by who has made it."""
    self._open.clear()


def outcome_of(answer: sessions.Answer) -> str:
  """The outcome, of OUTCOMES, of an answer of a pool."""
  known = answer.kind in ('ok', 'invalid', 'timeout')
  return answer.kind if known else 'failed'
