"""Rewards from worker processes: a failed call affects only its own sample."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import math
import threading
import types
from typing import Any

from rl_jax.checks import checked, chosen, ranged
from rl_jax.user_modules import NamesCode
from rl_jax.verification import messages, processes
from rl_jax.verification import worker as worker_lib
from rl_jax.verification.call_queue import Call, CallQueue, Rules
from rl_jax.verification.tally import Result, Tally
from rl_jax.verification.worker_pool import WorkerPool

REWARD = 'reward'
EPISODE_CALLS = ('reset', 'step')
CALLS = (*EPISODE_CALLS, REWARD)  # kinds of calls
KINDS = ('ok', 'error', 'invalid', 'timeout', 'died', 'stray')
LOST = ('timeout', 'died')  # by what a response made of its judge
NOTHING: Mapping[int, Any] = types.MappingProxyType({})


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class VerifierConfig:
  """Worker processes that compute rewards.

  num_workers: null has as many as calls wait without computing (a tool of the
    network, a judge), at most 256, and as many as the machine has processors
    for calls that compute; none with `on_device` or in a scanned run. 0
    computes rewards in this process, without any limit (trusted tasks only).
  memory_limit_bytes: address space of a worker, so that only the call that
    allocates too much fails; null: no limit.
  on_timeout: 'invalid' leaves a sample beyond the limit out of its group;
    'wrong' gives it the reward 0 in every component, and one that ends its
    process twice.
  on_turn_timeout: the same of a turn of an episode; with 'wrong' the episode
    ends there, with the rewards of its earlier turns.
  failed_share: the run ends when more of the episodes of a round have failed,
    in another way than that they could not be repeated: an environment that no
    longer answers. 1: never.
  journal_sync: an answer of an environment, or a reward, is written before it
    is used; 'line' also waits until it is on the disk, in case that the machine
    fails, and 'checkpoint' does so with each checkpoint.
  limits: calls of a kind that run at once, as {'reward': 16} for a judge that
    serves so many; kinds are 'reset' and 'step' of episodes, and 'reward'.
  rates: calls of a kind that begin in a second, as {'step': 2.5}.
  on_device: rewards by the task's `reward_device`, a function of tokens; then
    there are no workers.
  """

  num_workers: int | None = ranged(None, 0, 1024)
  timeout_seconds: float = ranged(10.0, 0.01)
  memory_limit_bytes: int | None = ranged(8 << 30, 1 << 20)
  on_timeout: str = chosen('invalid', ('invalid', 'wrong'))
  on_turn_timeout: str = chosen('wrong', ('invalid', 'wrong'))
  on_device: bool = False
  failed_share: float = ranged(0.5, 0.0, 1.0)
  journal_sync: str = chosen('checkpoint', ('checkpoint', 'line'))
  limits: dict[str, int] = dataclasses.field(default_factory=dict, hash=False)
  rates: dict[str, float] = dataclasses.field(default_factory=dict, hash=False)

  def __post_init__(self):
    _check_numbers('limits', self.limits, 1)
    _check_numbers('rates', self.rates, 0.001)

  @property
  def workers(self) -> int:
    """Processes that are started."""
    if self.num_workers is not None:
      return self.num_workers
    return 0 if self.on_device else 1


def _check_numbers(name, numbers, least):
  """Raises ValueError for a limit or rate that no call can keep."""
  for kind, most in numbers.items():
    if kind not in CALLS:
      raise ValueError(
        f'verifier.{name} has {kind!r}: expected kinds of {CALLS}'
      )
    is_number = isinstance(most, int | float) and not isinstance(most, bool)
    if not is_number or not least <= most < math.inf:
      raise ValueError(
        f'verifier.{name}[{kind!r}] = {most!r} is not at least {least}: no '
        'call would ever be made'
      )


@dataclasses.dataclass(frozen=True)
class Outcome(Result):
  """The result of one reward call.

  `components` is None unless kind is 'ok', or one of LOST that counts as wrong.
  error: reward raised. invalid: it did not return finite numbers by name with
  an `outcome`. timeout: it was killed at the time limit. died: its process
  ended (memory, os._exit, a crash).
  stray: its process sent a reply that was not due, and was killed.
  """

  components: dict[str, float] | None
  kind: str = 'ok'
  detail: str = ''


# Of (place, outcome, seconds queued, seconds) of a call.
Heard = Callable[[int, Outcome, float, float], None]


def _unheard(place: int, outcome: Outcome, queued: float, ran: float) -> None:
  """Notes nothing."""


class VerifierPool(WorkerPool):
  """Computes rewards in worker processes, with a time limit per sample.

  num_workers=0 computes them in this process, without a time limit: for trusted
  procedural tasks. None has as many processes as calls wait without computing,
  at most processes.MOST; limits and rates: of calls of the kind REWARD at once
  and in a second. Otherwise the task is pickled to new processes that cannot
  use an accelerator; examples must be picklable. A worker that exceeds
  timeout_seconds on one sample is killed with its descendants and replaced;
  the samples queued after it are judged by another. A process that a call
  leaves running is killed before the next call. Requests are numbered: a worker
  that replies twice or out of turn is killed and counted. memory_limit_bytes
  bounds the address space of a worker, with the libraries that it imports.
  Workers are not a sandbox: run generated code with
  `rl_jax.verification.sandbox`.

  Raises: RuntimeError if a worker cannot load the task; TypeError if the task
    has no method `reward`; `reward` raises ValueError if reward_weights has a
    name that no sample of the first call has among its components, and
    sandbox.BreachError if the task does, which ends the processes.
  """

  def __init__(
    self,
    task: Any,
    num_workers: int | None = 1,
    timeout_seconds: float = 10.0,
    *,
    memory_limit_bytes: int | None = None,
    on_timeout: str = 'invalid',
    start_timeout_seconds: float = processes.START_SECONDS,
    limits: Mapping[str, int] | None = None,
    rates: Mapping[str, float] | None = None,
  ):
    if num_workers is not None and num_workers < 0:
      raise ValueError(f'num_workers = {num_workers} is negative')
    if not 0 < timeout_seconds < math.inf:
      raise ValueError(
        f'timeout_seconds = {timeout_seconds} is not in (0, inf)'
      )
    _check_task(task)
    check_limits(task, num_workers, timeout_seconds)
    self._wrong = on_timeout == 'wrong'
    self._names = {'outcome', *task.reward_weights}
    self._whole: set[tuple[str, ...]] = set()  # names once returned together
    self._task = task
    self._lock = threading.Lock()
    self._closed = False
    crew, self._queue = None, None
    if num_workers == 0:
      task.prepare()
    else:
      crew = processes.Crew(
        task, num_workers, memory_limit_bytes, start_timeout_seconds
      )
      rules = Rules(
        parse=_parsed,
        failed=lambda kind, detail: Outcome(None, kind, detail),
        limits=limits or {},
        rates=rates or {},
      )
      self._queue = CallQueue(crew, timeout_seconds, rules)
    super().__init__(Tally(KINDS), crew)

  def close(self) -> None:
    """Ends all processes; a second call does nothing."""
    self._closed = True
    super().close()

  def reward(
    self,
    examples: Sequence[Any],
    responses: Sequence[str],
    known: Mapping[int, Outcome] = NOTHING,
    heard: Heard = _unheard,
  ) -> list[Outcome]:
    """One Outcome per sample, in order.

    Args:
      examples: of the samples.
      responses: to them.
      known: outcomes of an earlier process by place, which are not asked for.
      heard: of each call when it is complete, and once more if its outcome is
        then found to be 'stray'.
    """
    if len(examples) != len(responses):
      raise ValueError(
        f'{len(examples)} examples but {len(responses)} responses'
      )
    samples = list(enumerate(zip(examples, responses, strict=True)))
    samples = {place: one for place, one in samples if place not in known}
    with self._lock:
      if self._closed:
        raise RuntimeError('the VerifierPool is closed')
      found = {**known, **self._judged(samples, heard)}
      outcomes = [found[place] for place in range(len(examples))]
      outcomes = self._with_weighted(examples, outcomes)
    for place in samples:
      where = f'example {examples[place].id}'
      self._tally.hear(outcomes[place], 'verifier: first sample', where)
    return self._lost_as_wrong(outcomes) if self._wrong else outcomes

  def names(self) -> list[str]:
    """Components that samples have had, of which one that is lost has 0."""
    return sorted(self._names)

  def add_names(self, names: Sequence[str]) -> None:
    """Continues a run whose samples have had these components."""
    self._names.update(names)

  def check_weights(self, example: Any, response: str) -> None:
    """Raises ValueError where a response lacks a component that has a weight.

    For a right response, of which tasks say all that they ever say. A sample
    that cannot be judged shows nothing; none is counted.
    """
    with self._lock:
      outcomes = self._judged({0: (example, response)})
      self._with_weighted([example], [outcomes[0]])

  def try_one(self, example: Any, response: str) -> Outcome:
    """The outcome of a sample that is in no count and in no log."""
    with self._lock:
      return self._judged({0: (example, response)})[0]

  def _judged(self, samples, heard=_unheard):
    """Outcomes by place; samples: (example, response) by place."""
    if self._queue is None:
      found = {}
      for place, sample in samples.items():
        kind, reply, detail = worker_lib.judge(self._task, *sample)
        worker_lib.check_breach(kind, detail)
        found[place] = Outcome(reply, kind, detail)
      return found
    tries = 1 + self._wrong  # another call may have ended the process
    outcomes = self._queue.run(
      [
        Call(order=(n,), kind=REWARD, message=one, tries=tries, source=n)
        for n, one in samples.items()
      ],
      lambda call: heard(call.source, call.result, call.queued, call.ran),
    )
    self._tally.add('stray', self._queue.late_strays)
    self._queue.late_strays = 0
    return dict(zip(samples, outcomes, strict=True))

  def _lost_as_wrong(self, outcomes):
    for outcome in outcomes:
      self._names.update(outcome.components or ())
    zeros = dict.fromkeys(sorted(self._names), 0.0)
    return [
      dataclasses.replace(o, components=zeros) if o.kind in LOST else o
      for o in outcomes
    ]

  def _with_weighted(self, examples, outcomes):
    """The outcomes, invalid ones where a weighted component is missing.

    Raises ValueError if one never was among those of a sample: a name that the
    task does not have.
    """
    absent, found = {}, []
    for example, outcome in zip(examples, outcomes, strict=True):
      names = tuple(sorted(self._weights_of(example)))
      components = outcome.components
      if components is not None:
        if missing := sorted(set(names) - set(components)):
          detail = (
            f'reward_weights names {missing}, but the components are '
            f'{sorted(components)}'
          )
          absent[names] = detail
          outcome = Outcome(None, 'invalid', messages.cut(detail))
        else:
          self._whole.add(names)
      found.append(outcome)
    for names, detail in absent.items():
      if names not in self._whole:
        raise ValueError(f'{type(self._task).__name__}: {detail}')
    return found

  def _weights_of(self, example):
    return self._task.weights_of(example)


def check_limits(
  task: Any, num_workers: int | None, timeout_seconds: float
) -> None:
  """Raises ValueError if the task needs workers, or more time than they have.

  These are its traits `needs_workers` and `reward_seconds`.
  """
  name, traits = type(task).__name__, task.traits
  if num_workers == 0 and traits.needs_workers:
    raise ValueError(
      f'{name} needs a time limit: verifier.num_workers = 0, which has none; '
      'set it to 1 or more'
    )
  longest = traits.reward_seconds
  if num_workers != 0 and timeout_seconds <= longest:
    raise ValueError(
      f'verifier.timeout_seconds = {timeout_seconds} must exceed {longest}, '
      f'what the limits of {name} allow: else its samples are voided, not wrong'
    )


def _check_task(task):
  name = type(task).__name__
  if not isinstance(task, NamesCode):
    raise TypeError(f'{name} does not derive from rl_jax.tasks.Task')
  if not task.supports('reward'):
    raise TypeError(f'{name} has no method reward(example, response)')


def _parsed(number, kind, components, detail):
  """(number, Outcome) of a reply; ValueError or TypeError if it is none.

  Raises: BreachError of the task.
  """
  worker_lib.check_breach(kind, detail)
  if type(number) is not int or kind not in ('ok', 'error', 'invalid'):
    raise ValueError(f'a reply with number {number!r}, kind {kind!r}')
  if kind == 'ok':
    return number, Outcome(worker_lib.check_components(components))
  return number, Outcome(None, kind, messages.cut(str(detail)))
