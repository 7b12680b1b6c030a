"""Episodes across updates without a model: what starts when, and resume."""

import dataclasses
import os
from types import SimpleNamespace

import numpy as np
import pytest

from rl_jax.decoding.cache_places import HostCache, Places
from rl_jax.decoding.slot_engine import Result
from rl_jax.decoding.stop import make_stop
from rl_jax.episodes import slot_runner
from rl_jax.episodes.closings import FILE, ClosingJournal
from rl_jax.episodes.episode_prompts import EpisodePrompts
from rl_jax.episodes.journal import NumberedCalls
from rl_jax.episodes.schedule import Rule, Schedule
from rl_jax.episodes.turn_taking import TurnTaking
from rl_jax.episodes.turns import TurnConfig
from rl_jax.judging.judges import NO_JUDGES
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.rollouts.rounds import Draw
from rl_jax.runs.slot_collector import SlotCollector
from rl_jax.runtime.writer import sole_writer
from rl_jax.verification.sessions import SessionPool

N, G, T, K = 2, 2, 24, 2
FIXED = Rule(groups=N, staleness=K)
ARRIVAL = dataclasses.replace(FIXED, order='arrival', max_rounds=3)
TURNS = TurnConfig(max_turns=3, max_turn_tokens=3, max_observation_tokens=6)


class FakeSlots:
  """Three tokens a turn, a function of weights, row and place."""

  widest, fed, idle = N * G, 8, True
  unread, most_unread = 0, 0  # bursts of all games

  house = staticmethod(list)  # all rows have a place

  def __init__(self, programs, params, traj, key, most, *more):
    del programs, key, most, more
    self.places = Places(1, N * G, N * G, T, HostCache())
    self._params, self._traj, self.table = params, traj, None
    self._length = np.zeros(N * G, int)
    self.first = self._burst(range(N * G), 1)
    self._left = dict.fromkeys(range(N * G), 2)

  def feed(self, said):
    for row, (ids, _) in said.items():
      self._length[row] += len(ids)
      self._left[row] = 3

  def sample(self, rows, steps):
    del steps
    return self._burst(rows[: self.widest], None)

  def _burst(self, rows, count):
    found = {}
    for row in rows:
      n = count or self._left[row]
      group, sample = divmod(row, G)
      place = self._traj.serial + group, sample, int(self._length[row])
      seed = (self._params['v'], *place)
      ids = np.random.default_rng(seed).integers(4, 11, n).tolist()
      self._length[row] += n
      found[row] = Result(ids, False, count is None)
    FakeSlots.unread += 1
    FakeSlots.most_unread = max(FakeSlots.most_unread, FakeSlots.unread)

    def read():
      FakeSlots.unread -= 1
      return found

    return SimpleNamespace(rows=list(rows), ended=True, read=read)


class Selector:
  """Prompts in their order."""

  state = 0

  def select(self, count):
    self.state += count
    return np.arange(self.state - count, self.state)


class Run:
  """The batches of a run: of each group its serial, step, prompt and rows.

  calls: of a pool, in place of worker processes. rule: by default in the fixed
  order. drops: serials that a filter drops; None: there is no filter.
  """

  def __init__(self, task, folder, calls=None, rule=FIXED, drops=None):
    tokenizer = CharTokenizer(task.alphabet)
    writer = sole_writer()
    self.journal = NumberedCalls(SessionPool(task), folder, '', writer)
    if calls is not None:
      self.journal._calls._calls = calls(self.journal.pool)
    self.runner = slot_runner.SlotRunner(
      TurnTaking(
        task, tokenizer=tokenizer, stop=make_stop(tokenizer), turns=TURNS
      ),
      self.journal,
      closings=ClosingJournal(folder and folder / 'answers', writer),
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
    made._rule, made._schedule = rule, Schedule(rule)
    made._players, made._judges = 1, NO_JUDGES
    made._batches, made._saved, made._first = [], [], 0
    made._together = self._together
    self.drops, self.observed = drops, []
    if drops is not None:
      made._kept = lambda one, ended: [
        g not in drops for g in (*one.groups, -1)
      ]
      made._observe = self.observed.extend
    made._repeat()
    self.collector, self.update, self.serial = made, 0, 0
    self.method = SimpleNamespace(group_filter=drops)
    self.lagged = [({'v': 0}, 0)] * K
    self.batches, self.used = [], []

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

  def _together(self, places, found):
    groups = []
    for one, group in places:
      traj, turn_BT = found[one]
      rows = turn_BT[group * G : (group + 1) * G].tolist()
      groups.append((traj.serial + group, traj.version, rows))
    return groups

  def iterate(self, times):
    for _ in range(times):
      v, earlier, made = self.update, tuple(self.lagged), self.collector
      self.lagged = [*self.lagged[1:], ({'v': v}, 10 * v)]
      made._drawing = Draw(
        None, self.method, self.serial, 10 * v, {'v': v}, earlier
      )
      if self.drops is None:
        (groups,), _, last = made._draw(None, None, None)
        ids = [example.id for example in last[1]]
        said = [
          (tuple(row.episode.actions), row.record()['rewards'])
          for row in self.runner._rows
        ]
        rows = [said[n : n + G] for n in range(0, len(said), G)]
        self.batches.append(list(zip(groups, ids, rows, strict=True)))
      else:
        close = made._played()
        self.observed.extend(close.observe)
        made._use(close)
        self.batches.append((close.groups, close.kept))
      self.used.append((made._used.serials, made._used.behind))
      self.serial += len(made._used.serials)
      self.update += 1

  def close(self):
    """Closes the files."""
    self.journal.close()
    self.runner.closings.close()

  def saved(self):
    """The JSON object of a checkpoint, and the state beside it."""
    host = {**self.collector.host(), **self.runner.host()}
    counts = self.update, self.serial
    return host, self.collector.selector.state, list(self.lagged), counts

  def restore(self, saved):
    host, self.collector.selector.state, self.lagged, counts = saved
    self.update, self.serial = counts
    self.lagged = list(self.lagged)
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


@pytest.mark.parametrize('widest', [N * G, 2, 1])
def test_a_burst_starts_before_others_are_read(
  task, whole, tmp_path, monkeypatch, widest
):
  """It is of another game, or of other rows; batches are the same (E0)."""
  monkeypatch.setattr(FakeSlots, 'widest', widest)
  monkeypatch.setattr(FakeSlots, 'unread', 0)
  monkeypatch.setattr(FakeSlots, 'most_unread', 0)
  run = Run(task, tmp_path / 'run')
  run.iterate(6)
  run.close()
  assert run.batches == whole.batches
  assert FakeSlots.most_unread > 1


def test_what_starts_when(whole):
  """Update v trains groups vN.., sampled by weights max(0, v - K)."""
  for update, groups in enumerate(whole.batches):
    for n, ((serial, version, _), prompt, rows) in enumerate(groups):
      assert serial == prompt == update * N + n
      assert version == 10 * max(0, update - K)
      assert len(rows) == G and all(len(actions) for actions, _ in rows)
  assert len({str(groups) for groups in whole.batches}) == 6


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


def ticking(delayed_calls, seed, most):
  """Calls with seeded delays; each look at their clock moves it."""

  class Ticking(delayed_calls.DelayedCalls):
    """A clock that each look at it moves."""

    def poll(self, timeout):
      return super().poll(0.3 if timeout == 0.0 else timeout)

  def calls(pool):
    def make(request):
      (answer,) = pool.ask([request.payload])
      return 'ok', answer

    return Ticking(make, seed=seed, most=most)

  return calls


@pytest.mark.parametrize('seed', range(4))
def test_the_order_of_answers_changes_no_batch(
  whole, task, tmp_path, delayed_calls, seed
):
  """E0: seeded delays, a few calls at a time, across updates."""
  calls = ticking(delayed_calls, seed, (1, 3, 7, 100)[seed])
  run = Run(task, None, calls)
  run.iterate(6)
  run.close()
  assert run.batches == whole.batches


def test_calls_are_handed_out_before_an_update(task, delayed_calls):
  """A queue makes calls when it is polled: they run beside the update."""

  class HandedOut(delayed_calls.DelayedCalls):
    waiting = 0

    def submit(self, request):
      super().submit(request)
      self.waiting += 1

    def poll(self, timeout):
      self.waiting = 0
      return super().poll(timeout)

  def calls(pool):
    return HandedOut(lambda one: ('ok', pool.ask([one.payload])[0]), seed=1)

  run = Run(task, None, calls)
  for _ in range(4):
    run.iterate(1)
    assert not run.journal._calls._calls.waiting
  run.close()


@pytest.mark.parametrize('seed', range(4))
def test_by_arrival_every_group_is_trained_once(
  task, tmp_path, delayed_calls, seed
):
  """No group is older than K, none is lost; a batch lies in serial order."""
  calls = ticking(delayed_calls, seed, (1, 3, 7, 100)[seed])
  run = Run(task, tmp_path, calls, ARRIVAL)
  run.iterate(12)
  run.close()
  used = [serial for serials, _ in run.used for serial in serials]
  assert len(used) == len(set(used)) == 12 * N
  assert set(range(10 * N)) <= set(used)  # those of K updates ago and before
  for update, (serials, behind) in enumerate(run.used):
    assert list(serials) == sorted(serials)
    assert 0 <= min(behind) and max(behind) <= 10 * min(K, update)
    for (serial, version, _), prompt, _ in run.batches[update]:
      assert prompt == serial and 10 * update - version in behind
  if seed:  # not all calls are made one after the other
    assert used != sorted(used)


@pytest.mark.parametrize('drops', [None, {1, 2, 3, 7, 8, 12}])
@pytest.mark.parametrize('first', [1, 3, 5])
def test_a_run_by_arrival_is_a_function_of_its_journal(
  task, tmp_path, delayed_calls, drops, first
):
  """E0: a run that stops, one whose last updates are lost, and a whole one in
  another order of answers, with the same closings."""

  def run(folder, seed, times, saved=None, rule=ARRIVAL):
    calls = ticking(delayed_calls, seed, 100)
    made = Run(task, tmp_path / folder, calls, rule, drops)
    if saved is not None:
      made.restore(saved)
    made.iterate(times)
    made.close()
    return made

  begun = run('parts', 0, first)
  saved = begun.saved()
  lost = run('parts', 1, 3, saved)  # and killed: nothing of it was saved
  again = run('parts', 2, 8 - first, saved)
  assert again.batches[:3] == lost.batches[: 8 - first]
  assert again.used[:3] == lost.used[: 8 - first]
  known = (tmp_path / 'parts' / 'answers' / FILE).read_bytes()
  (tmp_path / 'whole' / 'answers').mkdir(parents=True)
  (tmp_path / 'whole' / 'answers' / FILE).write_bytes(known)
  whole = run('whole', 3, 8)
  assert whole.batches == begun.batches + again.batches
  assert whole.used == begun.used + again.used
  assert whole.observed == begun.observed + again.observed
  assert (tmp_path / 'whole' / 'answers' / FILE).read_bytes() == known


@pytest.mark.parametrize('order', ['fixed', 'arrival'])
def test_dropped_groups_are_replaced(task, tmp_path, delayed_calls, order):
  """Groups that count fill the batches, in each order of answers; the fixed
  order has the same ones each time, and so has a run that stops."""
  rule = dataclasses.replace(FIXED, order=order, max_rounds=2)
  drops = {0, 1, 2, 3, 4, 5, 9, 14}
  found = []
  for seed in range(3):
    calls = ticking(delayed_calls, seed, 100)
    run = Run(task, tmp_path / f'{seed}', calls, rule, drops)
    run.iterate(3)
    saved = run.saved()
    run.close()
    again = Run(task, tmp_path / f'{seed}', calls, rule, drops)
    again.restore(saved)
    again.iterate(3)
    again.close()
    batches = run.batches + again.batches
    used = [g for serials, _ in run.used + again.used for g in serials]
    assert len(used) == len(set(used))
    observed = run.observed + again.observed
    assert len(observed) == len(set(observed)) and set(used) <= {*observed}
    for groups, kept in batches:
      assert len(groups) == N
      assert not {*groups[:kept]} & drops and {*groups[kept:]} <= drops
    assert sum(kept for _, kept in batches[1:]) == 5 * N
    found.append((batches, observed))
  if order == 'fixed':
    assert found[0] == found[1] == found[2]


def test_a_batch_that_cannot_be_filled_is_short(task, tmp_path):
  """All are dropped: after max_rounds they fill the batch, and are gone."""
  rule = dataclasses.replace(FIXED, max_rounds=2)
  run = Run(task, tmp_path, None, rule, set(range(100)))
  run.iterate(2)
  run.close()
  (first, second), used = run.batches, run.used
  assert first == ((0, 1), 0) and second[1] == 0
  assert set(used[0][0]) == set(range((K + 2) * N))
