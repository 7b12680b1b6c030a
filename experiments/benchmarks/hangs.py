"""Times the episodes beside one whose tool never answers.

Rows play turns whose tool sleeps; each continues as soon as it is answered. In
every second round the tool of one row hangs: in a worker process it ignores all
signals that can be ignored, in an event loop the coroutine swallows its
cancellation. Prints a JSON line for each kind of workers:

  others_ratio   time of the other rows beside a hang over that without one:
                 median of pairs of adjacent rounds; others_interval: the
                 least and the most, which hold it in 98% for 7 pairs
  gone_after     seconds from the call that hangs until its process is gone,
                 the most of all rounds; limit: of a call
  left           processes that are there when all pools are closed

Command: python -m experiments.benchmarks.hangs
Cost: 3 minutes, most of it sleep.
"""

import argparse
import asyncio
import dataclasses
import json
import os
import signal
import tempfile
import time
from typing import Any

import numpy as np

from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments import Environment, EnvironmentTask, Reply
from rl_jax.tasks.environments.base import AsyncEnvironment, seed_of
from rl_jax.verification import session_host
from rl_jax.verification.sessions import WORKERS, Request, SessionPool

HANG = 'hang'


@dataclasses.dataclass(frozen=True)
class Sleeping(EnvironmentTask):
  """Each step takes `seconds`; the action HANG never ends.

  pids: a file that gets the process of a hang.
  """

  seconds: float = 0.25
  workers: str = 'process'
  pids: str = ''

  @property
  def traits(self) -> TaskTraits:
    """Episodes draw nothing."""
    return TaskTraits(global_random=False, workers=self.workers)

  def make(self, example: Example) -> Any:
    """One episode."""
    kind = AsyncSleeper if self.workers == 'asyncio' else Sleeper
    return kind(self)

  def note(self) -> None:
    """Writes which process hangs."""
    with open(self.pids, 'w', encoding='utf-8') as file:
      file.write(str(os.getpid()))


class Sleeper(Environment):
  """An episode that blocks its process."""

  def __init__(self, task: Sleeping):
    self._task = task

  def reset(self, seed: int) -> Reply:
    """At once."""
    return Reply('begin')

  def step(self, action: str) -> Reply:
    """Sleeps, or hangs."""
    if action == HANG:
      signal.signal(signal.SIGTERM, signal.SIG_IGN)
      self._task.note()
    while action == HANG:
      time.sleep(1.0)
    time.sleep(self._task.seconds)
    return Reply(action)


class AsyncSleeper(AsyncEnvironment):
  """An episode that waits in an event loop."""

  def __init__(self, task: Sleeping):
    self._task = task

  async def reset(self, seed: int) -> Reply:
    """At once."""
    return Reply('begin')

  async def step(self, action: str) -> Reply:
    """Sleeps, or hangs and swallows every cancellation."""
    if action == HANG:
      self._task.note()
    while action == HANG:
      try:
        await asyncio.sleep(1.0)
      except asyncio.CancelledError:
        continue
    await asyncio.sleep(self._task.seconds)
    return Reply(action)


def played(
  pool: SessionPool, task: Sleeping, number: int, rows: int, hangs: bool
) -> tuple[float, float]:
  """(seconds of the other rows, seconds until the process is gone or 0).

  Each row has a reset, and then four turns; row 0 hangs in its second one.
  """
  example, answers = task.example('train', 0), {}
  requests = {
    row: Request((number, row), example, seed_of(example))
    for row in range(rows)
  }
  replies = pool.ask(list(requests.values()))
  for row, answer in enumerate(replies):
    assert answer.reply is not None, answer
    answers[row] = (session_host.fingerprint(answer.reply),)
  if os.path.exists(task.pids):
    os.unlink(task.pids)
  started, hung, others = time.perf_counter(), 0.0, 0.0

  def go_on(row):
    turn = len(requests[row].actions)
    action = HANG if hangs and not row and turn == 1 else f'turn {turn}'
    actions = (*requests[row].actions, action)
    requests[row] = dataclasses.replace(
      requests[row], actions=actions, before=answers[row]
    )
    pool.submit(requests[row], (number, row, turn))

  for row in requests:
    go_on(row)
  left, gone = set(requests), 0.0
  while left:
    for made in pool.poll(0.02):
      row = made.request.episode[1]
      if made.answer.reply is None or len(made.request.actions) == 4:
        left.discard(row)
      else:
        answers[row] += (session_host.fingerprint(made.answer.reply),)
        go_on(row)
    now = time.perf_counter()
    if not left - {0} and not others:
      others = now - started
    if hangs and not hung and os.path.exists(task.pids):
      hung = now
    if hung and not gone and not _lives(task.pids):
      gone = now - hung
  while hung and not gone:
    time.sleep(0.01)
    if not _lives(task.pids):
      gone = time.perf_counter() - hung
  return others, gone


def _lives(path):
  with open(path, encoding='utf-8') as file:
    text = file.read()
  return not text or os.path.exists(f'/proc/{text}')


def measured(
  workers: str, rows: int, pairs: int, limit: float, seconds: float
) -> dict[str, object]:
  """The line of a kind of workers."""
  ratios, gone = [], []
  with tempfile.TemporaryDirectory() as folder:
    task = Sleeping(
      workers=workers, pids=os.path.join(folder, 'pid'), seconds=seconds
    )
    with SessionPool(task, None, limit) as pool:
      played(pool, task, 0, rows, False)  # starts processes
      for pair in range(pairs):
        times = {}
        for hangs in (False, True) if pair % 2 else (True, False):
          number = 1 + 2 * pair + hangs
          times[hangs], after = played(pool, task, number, rows, hangs)
          gone += [after] * hangs
        ratios.append(times[True] / times[False])
      pids = pool.worker_pids()
  left = [pid for pid in pids if os.path.exists(f'/proc/{pid}')]
  return {
    'benchmark': 'hangs',
    'workers': workers,
    'rows': rows,
    'pairs': pairs,
    'limit': limit,
    'others_ratio': float(np.median(ratios)),
    'others_interval': [min(ratios), max(ratios)],
    'gone_after': max(gone),
    'left': len(left),
  }


def main() -> None:
  """Prints the lines."""
  parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
  parser.add_argument('--rows', type=int, default=32)
  parser.add_argument('--pairs', type=int, default=7)
  parser.add_argument('--limit', type=float, default=6.0)
  parser.add_argument('--seconds', type=float, default=0.5, help='of a call')
  parser.add_argument('--workers', nargs='+', default=['process', 'asyncio'])
  args = parser.parse_args()
  for workers in args.workers:
    assert workers in WORKERS
    found = measured(workers, args.rows, args.pairs, args.limit, args.seconds)
    print(json.dumps(found), flush=True)


if __name__ == '__main__':
  main()
