"""Episodes across updates without a model: what starts when, and resume."""

import os
from types import SimpleNamespace

import numpy as np
import pytest

from rl_jax.decoding.slot_engine import Result
from rl_jax.decoding.stop import make_stop
from rl_jax.episodes import slot_runner
from rl_jax.episodes.episode_prompts import EpisodePrompts
from rl_jax.episodes.journal import NumberedCalls
from rl_jax.episodes.schedule import Rule, Schedule
from rl_jax.episodes.turns import TurnConfig
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.rollouts.rounds import Draw
from rl_jax.runs.slot_collector import SlotCollector
from rl_jax.runtime.writer import sole_writer
from rl_jax.verification.sessions import SessionPool

N, G, T, K = 2, 2, 24, 2
TURNS = TurnConfig(max_turns=3, max_turn_tokens=3, max_observation_tokens=6)


class FakeSlots:
  """Three tokens a turn, a function of weights, row and place."""

  def __init__(self, programs, params, traj, key, most):
    del programs, key, most
    self._params, self._traj, self.table = params, traj, None
    self._length = np.zeros(N * G, int)
    self.first = self._burst(range(N * G), 1)
    self._left = dict.fromkeys(range(N * G), 2)

  def feed(self, said):
    for row, (ids, _) in said.items():
      self._length[row] += len(ids)
      self._left[row] = 3

  def sample(self, rows):
    return self._burst(rows, None)

  def _burst(self, rows, count):
    found = {}
    for row in rows:
      n = count or self._left[row]
      seed = (*self._params, self._traj.serial, row, int(self._length[row]))
      ids = np.random.default_rng(seed).integers(4, 11, n).tolist()
      self._length[row] += n
      found[row] = Result(ids, False, count is None)
    return SimpleNamespace(rows=list(rows), read=lambda: found)


class Selector:
  """Prompts in their order."""

  state = 0

  def select(self, count):
    self.state += count
    return np.arange(self.state - count, self.state)


class Run:
  """The batches of a run, as (serial, version, actions of its rows)."""

  def __init__(self, task, folder, calls=None):
    tokenizer = CharTokenizer(task.alphabet)
    self.journal = NumberedCalls(SessionPool(task), folder, '', sole_writer())
    self.made = []
    if calls is not None:
      self.journal._calls._calls = calls(self.journal.pool)
    self.runner = slot_runner.SlotRunner(
      task,
      self.journal,
      tokenizer=tokenizer,
      stop=make_stop(tokenizer),
      turns=TURNS,
    )
    self.runner._finished = self._finished
    made = SlotCollector.__new__(SlotCollector)
    made.runner, made.key, made.selector = self.runner, None, Selector()
    made.prompts = EpisodePrompts(
      task, 'train', tokenizer, 16, begin=self.runner.open
    )
    made.engine = SimpleNamespace(
      start=self._start, slots=SimpleNamespace(settle=lambda *_: None)
    )
    made._groups, made._batches, made._saved = N, [], []
    made._schedule = Schedule(Rule(groups=N, staleness=K))
    self.collector, self.update = made, 0
    self.lagged = [((0,), 0)] * K
    self.batches = []

  def _start(self, prompt, mask, ids, serial, version):
    del prompt, mask, ids
    return SimpleNamespace(
      response_BT=np.zeros((N * G, T)),
      group_size=G,
      serial=serial,
      version=version,
    )

  def _finished(self, engine, traj, table, marks, examples):
    del engine, table, examples
    return traj, marks[0]

  def iterate(self, times):
    for _ in range(times):
      v = self.update
      earlier = tuple(self.lagged)
      self.lagged = [*self.lagged[1:], ((v,), 10 * v)]
      self.collector._drawing = Draw(None, None, v * N, 10 * v, (v,), earlier)
      (traj,), _, last = self.collector._draw(None, None, None)
      rows, turn_BT = [], traj[1]
      for row in self.runner._rows:
        rows.append((tuple(row.episode.actions), row.record()['rewards']))
      ids = [example.id for example in last[1]]
      self.batches.append(
        (traj[0].serial, traj[0].version, ids, rows, turn_BT.tolist())
      )
      self.update += 1

  def close(self):
    """Closes the files."""
    self.journal.close()

  def saved(self):
    """The JSON object of a checkpoint, and the state beside it."""
    host = {**self.collector.host(), **self.runner.host()}
    return host, self.collector.selector.state, list(self.lagged), self.update

  def restore(self, saved):
    host, self.collector.selector.state, self.lagged, self.update = saved
    self.collector.restore({}, host)
    self.runner.restore({}, host)


@pytest.fixture(name='task')
def _task(monkeypatch):
  monkeypatch.setattr(slot_runner, 'RunningSlots', FakeSlots)
  monkeypatch.syspath_prepend(os.path.dirname(os.path.dirname(__file__)))
  import misbehaving_environments

  return misbehaving_environments.Whimsical()


@pytest.fixture(name='whole')
def _whole(task, tmp_path):
  run = Run(task, tmp_path / 'whole')
  run.iterate(6)
  yield run
  run.close()


def test_what_starts_when(whole):
  """Update v trains groups vN.., sampled by weights max(0, v - K)."""
  for update, (serial, version, ids, rows, _) in enumerate(whole.batches):
    assert serial == update * N
    assert version == 10 * max(0, update - K)
    assert ids == [update * N, update * N + 1]
    assert len(rows) == N * G and all(len(actions) for actions, _ in rows)
  assert len({str(rows) for *_, rows, _ in whole.batches}) == 6


@pytest.mark.parametrize('first', [1, 2, 4])
def test_open_batches_start_again(whole, task, tmp_path, first):
  """E0: with their weights, prompts and answers; no answer is asked for twice
  if it was journaled."""
  run = Run(task, tmp_path / 'part')
  run.iterate(first)
  saved = run.saved()
  run.runner.forget(saved[0])
  run.close()
  again = Run(task, tmp_path / 'part')
  again.restore(saved)
  assert again.saved()[0] == saved[0]  # also before they have started again
  again.iterate(6 - first)
  again.close()
  assert run.batches + again.batches == whole.batches


@pytest.mark.parametrize('seed', range(4))
def test_the_order_of_answers_changes_no_batch(
  whole, task, tmp_path, delayed_calls, seed
):
  """E0: seeded delays, a few calls at a time, across updates."""

  class Ticking(delayed_calls.DelayedCalls):
    """A clock that each look at it moves."""

    def poll(self, timeout):
      return super().poll(0.3 if timeout == 0.0 else timeout)

  def calls(pool):
    def make(request):
      (answer,) = pool.ask([request.payload])
      return 'ok', answer

    return Ticking(make, seed=seed, most=(1, 3, 7, 100)[seed])

  run = Run(task, None, calls)
  run.iterate(6)
  run.close()
  assert run.batches == whole.batches
