"""Episodes that share a process and wait at the same time."""

import os
import signal
import types

import pytest

from rl_jax.tasks.environments.base import seed_of
from rl_jax.verification import session_host
from rl_jax.verification.call_queue import CallQueue
from rl_jax.verification.concurrent_queue import ConcurrentQueue
from rl_jax.verification.sessions import Request, SessionPool

WAYS = ('asyncio', 'thread')


class Rows:
  """Episodes of one round, which continue with every call of `step`."""

  def __init__(self, pool, task, rows, number=0):
    self.pool, self.actions, self.said = pool, {}, {}
    self.example, self.number = task.example('train', 0), number
    self.step(dict.fromkeys(range(rows)))

  def step(self, actions):
    """Kinds; actions: text by row, None for a reset."""
    requests = []
    for row, action in actions.items():
      given = self.actions.setdefault(row, ())
      if action is not None:
        given = self.actions[row] = (*given, action)
      before = map(session_host.fingerprint, self.said.get(row, ()))
      requests.append(
        Request(
          (self.number, row),
          self.example,
          seed_of(self.example),
          given,
          tuple(before),
        )
      )
    answers = self.pool.ask(requests)
    for row, answer in zip(actions, answers, strict=True):
      self.said.setdefault(row, []).append(answer.reply)
    self.details = [answer.detail for answer in answers]
    return [answer.kind for answer in answers]

  def texts(self, row):
    return [reply['observation'] for reply in self.said[row]]


def alone(task, actions):
  """The replies to one episode, without workers."""
  with SessionPool(task, 0) as pool:
    rows = Rows(pool, task, 1)
    for action in actions:
      rows.step({0: action})
    return rows.texts(0)


@pytest.mark.parametrize('way', WAYS)
def test_calls_of_a_process_wait_together(bad, way):
  """All rows meet in one process; E0: texts are those of one row."""
  task, count = bad.Waits(workers=way), 100
  with SessionPool(task, 1, 60.0) as pool:
    rows = Rows(pool, task, count)
    kinds = rows.step(dict.fromkeys(range(count), f'meet {count}'))
    assert kinds == ['ok'] * count
    assert rows.step(dict.fromkeys(range(count), 'done')) == ['ok'] * count
    texts = {tuple(rows.texts(row)) for row in range(count)}
  (heard,) = texts
  expected = alone(bad.Waits(workers=way), ['meet 1', 'done'])
  assert [x.replace(f'meet {count}', 'meet 1') for x in heard] == expected


@pytest.mark.parametrize('way', WAYS)
def test_a_failure_costs_one_row(bad, way):
  """Others of its process continue, repeated where it was killed; E0."""
  task = bad.Waits(workers=way)
  cases = [
    *(('raise', 'error'), ('nothing', 'invalid'), ('nan', 'invalid')),
    *(('flood', 'invalid'), ('text', 'invalid'), ('sleep', 'timeout')),
    ('exit', 'died'),
  ]
  if way == 'asyncio':  # threads cannot be cancelled
    cases += [('swallow', 'timeout'), ('stubborn', 'timeout')]
    cases += [('hang', 'timeout')]  # blocks the event loop
  good = len(cases)
  with SessionPool(task, 1, 2.0) as pool:
    rows = Rows(pool, task, good + 3)
    rows.step(dict.fromkeys(range(good + 3), 'one'))
    for row, (action, kind) in enumerate(cases):
      kinds = rows.step({row: action, good: 'a', good + 1: 'b'})
      assert kinds == [kind, 'ok', 'ok'], (action, rows.details)
    # The same at once.
    last = {row: 'c' for row in range(good, good + 3)}
    assert rows.step(last) == ['ok'] * 3
    texts = rows.texts(good)
  assert texts == alone(task, ['one', *('a' for _ in cases), 'c'])


def test_failures_at_once_cost_their_rows(bad):
  """Nobody knows which call of a silent process is guilty; it is found."""
  task = bad.Waits()
  with SessionPool(task, 2, 2.0) as pool:
    rows = Rows(pool, task, 8)
    actions = dict(
      enumerate(['hang', 'a', 'b', 'exit', 'c', 'd', 'sleep', 'e'])
    )
    kinds = rows.step(actions)
  expected = dict.fromkeys(range(8), 'ok')
  expected |= {0: 'timeout', 3: 'died', 6: 'timeout'}
  assert dict(enumerate(kinds)) == expected, rows.details


def test_killed_workers_cost_nothing(bad):
  task = bad.Waits()
  with SessionPool(task, 2) as pool:
    rows = Rows(pool, task, 6)
    for turn in range(3):
      for pid in pool.worker_pids():
        os.kill(pid, signal.SIGKILL)
      assert rows.step(dict.fromkeys(range(6), f'a{turn}')) == ['ok'] * 6
    texts = [rows.texts(row) for row in range(6)]
  assert texts == [alone(task, ['a0', 'a1', 'a2'])] * 6


def test_coroutines_need_no_process_of_this_kind(bad):
  """One after the other in a process, or in this one."""
  task = bad.Waits()
  assert len(alone(task, ['a', 'b'])) == 3


@pytest.mark.parametrize(
  ('task', 'text'),
  [
    ({'workers': 'loop'}, "workers = 'loop' is none of"),
    ({'global_random': True}, 'needs global_random = False'),
  ],
)
def test_traits_are_checked(bad, task, text):
  with pytest.raises(ValueError, match=text):
    SessionPool(bad.Waits(**task), 1)


def test_whether_a_worker_is_idle_costs_the_same_beside_many_calls(bad):
  """A single call is examined, and none of a thousand."""
  read = []

  class Pending:
    """A call that notes that it was examined."""

    @property
    def is_alone(self):
      read.append(self)
      return len(read) == 1

  worker = types.SimpleNamespace(pending={0: Pending()})
  with SessionPool(bad.Waits(workers='asyncio'), 1, 60.0) as pool:
    idle = pool._queue._idle
    assert not idle(worker) and idle(worker) and len(read) == 2
    worker.pending |= {n: Pending() for n in range(1000)}
    assert idle(worker) and len(read) == 2
    worker.pending |= {n: Pending() for n in range(4096)}
    assert not idle(worker)


def test_calls_that_are_due_are_one_message(bad, monkeypatch):
  """Each worker has one; a look examines the time of one call of it only."""
  sent, examined = [], []
  send, ends = CallQueue._send, ConcurrentQueue._first_ends

  def noted_send(self, worker, messages):
    sent.append(len(messages))
    return send(self, worker, messages)

  def noted_ends(self, *args):
    found = list(ends(self, *args))
    examined.append(len(found))
    return found

  monkeypatch.setattr(CallQueue, '_send', noted_send)
  monkeypatch.setattr(ConcurrentQueue, '_first_ends', noted_ends)
  task, count = bad.Waits(), 300
  with SessionPool(task, 1, 60.0) as pool:
    rows = Rows(pool, task, count)
    kinds = rows.step(dict.fromkeys(range(count), f'meet {count}'))
    assert kinds == ['ok'] * count
    queue = pool._queue
    assert not queue._numbers and not any(w.given for w in queue._crew.workers)
    assert not queue._running().total()
  assert sent == [count, count]
  assert max(examined) == 1


@pytest.mark.parametrize('way', ['asyncio', 'process'])
def test_calls_beyond_a_limit_are_not_looked_at_each_time(
  bad, way, monkeypatch
):
  """Those that wait are as many as they like; E0 of the texts."""
  looked, is_due = [], CallQueue._is_due

  def noted(self, *args):
    looked.append(1)
    return is_due(self, *args)

  monkeypatch.setattr(CallQueue, '_is_due', noted)
  task = bad.Waits() if way == 'asyncio' else bad.Whimsical()
  count = 200 if way == 'asyncio' else 40
  with SessionPool(task, 1, 60.0, limits={'step': 1, 'reset': 1}) as pool:
    rows = Rows(pool, task, count)
    assert len(looked) < 8 * count
    assert rows.step(dict.fromkeys(range(count), 'a')) == ['ok'] * count
  assert len(looked) < 16 * count


@pytest.mark.slow
def test_ten_thousand_episodes_wait_together(bad):
  """More than a worker has at once, and than its pipe holds replies of."""
  task, count = bad.Waits(), 10_000
  with SessionPool(task, 2, 600.0) as pool:
    rows = Rows(pool, task, count)
    assert rows.step(dict.fromkeys(range(count), 'a')) == ['ok'] * count
    assert not pool.made_again()['retries']
