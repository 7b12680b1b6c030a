"""Episodes in worker processes: a failed one costs only its own row."""

from collections.abc import Sequence
import dataclasses
import threading
from typing import Any

from rl_jax.verification import messages, processes, session_host
from rl_jax.verification.pool import check_limits
from rl_jax.verification.rounds import Closing, Round
from rl_jax.verification.tally import Result, Tally
from rl_jax.verification.worker import check_breach
from rl_jax.verification.worker_pool import WorkerPool

KINDS = ('ok', 'error', 'invalid', 'timeout', 'died', 'stray', 'mismatch')
CLOSE = 'close'  # is counted, too: an episode that failed as it was closed


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


class SessionPool(WorkerPool):
  """Makes episodes of an environment task and steps them.

  num_workers=0 has them in this process, without a time limit: for trusted
  environments. Otherwise each row stays with one worker process. A call beyond
  timeout_seconds is killed with its process, of which the other episodes are
  repeated in a new one; so are all that a call needs and no process has. An
  episode that does not close within that time, or ends its process as it is
  closed, costs no row: it is counted as 'close'.

  Raises: RuntimeError if a worker cannot load the task; `ask` raises
    sandbox.BreachError if the task does.
  """

  def __init__(
    self,
    task: Any,
    num_workers: int = 0,
    timeout_seconds: float = 10.0,
    *,
    memory_limit_bytes: int | None = None,
    start_timeout_seconds: float = 120.0,
  ):
    check_limits(task, num_workers, timeout_seconds)
    self._timeout = timeout_seconds
    self._lock = threading.Lock()
    crew, self._host = None, None
    if num_workers:
      crew = processes.Crew(
        task, num_workers, memory_limit_bytes, start_timeout_seconds, True
      )
    else:
      task.prepare()
      self._host = session_host.Host(task)
    super().__init__(Tally((*KINDS, CLOSE)), crew)

  def ask(self, requests: Sequence[Request]) -> list[Answer]:
    """The answers, in order; requests are of different episodes."""
    calls = [
      (r.episode, r.example, r.seed, r.actions, r.before) for r in requests
    ]
    with self._lock:
      if self._crew is None:
        assert self._host is not None
        answers = [_answer(*self._host.answer(*call)) for call in calls]
      else:
        round_ = Round(
          self._crew,
          calls,
          self._timeout,
          parse=_parsed,
          failed=lambda kind, detail: Answer(None, kind, detail),
          place=lambda i: requests[i].episode[1],
          tries=2,  # whoever killed the process, it can be repeated
        )
        answers = round_.run()
        for what, how in round_.failed_closes:
          self._tally.hear(Answer(None, CLOSE, how), 'environment', what)
    for request, answer in zip(requests, answers, strict=True):
      where = (
        f'example {request.example.id}, seed {request.seed}, '
        f'after {len(request.actions)} actions'
      )
      self._tally.hear(answer, 'environment: first call', where)
    return answers


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
