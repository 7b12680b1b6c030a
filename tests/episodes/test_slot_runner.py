"""Episodes in slots: the record of a plain loop, in any order of answers."""

import dataclasses
import json
import os

import pytest

from rl_jax.episodes.calls import Answer, Request
from rl_jax.episodes.turns import TurnConfig
from rl_jax.tasks import Program
from rl_jax.worlds import Arithmetic, KeyDoor

N, G, T = 3, 4, 32
TURNS = TurnConfig(max_turns=4, max_turn_tokens=3, max_observation_tokens=6)


def test_a_coroutine_whose_calls_are_written_down(
  in_slots, Played, plain_episodes, monkeypatch
):
  """E2 against a plain loop: it calls before its first turn and between."""
  path = os.path.dirname(os.path.dirname(__file__))
  monkeypatch.syspath_prepend(path)
  import agents

  task = Program(
    task=Arithmetic(digits=1), agent=agents.counting, chat=False, num_train=8
  )
  played = Played(task, workers=1, seconds=60.0)
  plain_episodes.check_plain(played, task, workers=1, seconds=60.0)
  found = in_slots.InSlots(played, task, calls=None, seconds=60.0)
  in_slots.check_same(played, found, log_probs=True)
  assert {one.kind for one in found.outcomes} == {'ok'}
  (first, second) = found.episodes.shown()(0)['turns']
  assert first['observation'] == '4='
  assert first['asked'] == [['policy.call', '{"answer": 5}']]
  assert second['observation'] == '5='


@pytest.fixture(name='whims', scope='module')
def _whims(in_slots, Played, bad):
  """(a round, the same whose calls are answered in their order, its task)."""
  task = bad.Whimsical()
  played = Played(task)
  return played, in_slots.InSlots(played, task), task


def test_the_record_is_that_of_a_plain_loop(in_slots, plain_episodes, whims):
  """E2, and E0 against the same round."""
  played, found, task = whims
  plain_episodes.check_plain(played, task)
  in_slots.check_same(played, found, log_probs=True)
  turns = played.host.turn_BT.max(axis=1) + 1
  assert turns.max() > 2 and len(set(turns)) > 1
  known, metrics = played.episodes.metrics(), found.episodes.metrics()
  for name in known:
    if name.startswith('episode/'):
      assert metrics[name] == known[name], name


@pytest.mark.parametrize('seed', range(6))
def test_the_order_of_answers_changes_nothing(
  in_slots, whims, delayed_calls, seed
):
  """E0, also the log-probs: seeded delays, a few calls at a time."""
  played, first, task = whims

  class Ticking(delayed_calls.DelayedCalls):
    """A clock that each look at it moves."""

    def poll(self, timeout):
      return super().poll(0.4 if timeout == 0.0 else timeout)

  def calls(make):
    return Ticking(make, seed=seed, most=(1, 3, 100)[seed % 3])

  found = in_slots.InSlots(played, task, calls)
  in_slots.check_same(first, found, log_probs=True)
  order = [(r.sample, r.turn) for r in found.queue.made]
  assert len(set(order)) == len(order)  # nothing is asked twice
  if seed % 3:
    assert order != sorted(order, key=lambda one: (one[1], one[0]))


@pytest.fixture(name='four', scope='module')
def _four(in_slots, whims):
  """The round in four slots, with a place in the cache for each of 12 rows."""
  played, _, task = whims
  return in_slots.InSlots(played, task, slots=4)


@pytest.mark.parametrize('rows', [0, 2, 3, 8])
@pytest.mark.parametrize('seed', [1, 2])
def test_rows_that_wait_on_the_host_have_the_same_bits(
  in_slots, whims, four, delayed_calls, rows, seed
):
  """E0, also the log-probs: 4 places of 12 rows, and room for others on the
  host, which is never exceeded; without any, rows keep their place to the end.
  """
  played, _, task = whims

  class Ticking(delayed_calls.DelayedCalls):
    """A clock that each look at it moves."""

    def poll(self, timeout):
      return super().poll(0.2 if timeout == 0.0 else timeout)

  def calls(make):
    return Ticking(make, seed=seed)

  found = in_slots.InSlots(
    played,
    task,
    calls,
    slots=4,
    cache_tokens=4 * T,
    host_tokens=rows * T,
  )
  in_slots.check_same(four, found, log_probs=True)
  host = found.episodes.host_cache
  assert host.used == 0 and host.most <= rows * T
  assert (host.most > 0) == (rows > 0)
  metrics = found.episodes.metrics()
  assert 0 < metrics['cache/device'] <= 4 * T
  assert (metrics['cache/host'] > 0) == (rows > 0)
  assert 'cache/host' not in four.episodes.metrics()


@pytest.mark.parametrize('slots', [1, 5])
def test_fewer_slots_than_rows(in_slots, whims, slots):
  """E2: the number of slots is a shape of the program."""
  played, _, task = whims
  found = in_slots.InSlots(played, task, slots=slots)
  in_slots.check_same(played, found, log_probs=False)
  assert found.episodes.metrics()['device/slots_share'] > 0.5


def test_failures_cost_their_own_rows(bad, Played, plain_episodes):
  """Wrong replies in the middle of episodes, and a prompt that never starts."""
  failing = {'b': 'raise', 'g': 'nan', 'd': 'text'}
  task = bad.Whimsical(failing=failing, unable={1: 'raise'})
  played = Played(task)
  failed = [one.error is not None for one in played.outcomes]
  assert all(failed[G : 2 * G]) and 0 < sum(failed) - G < 2 * G
  plain_episodes.check_plain(played, task)


def test_an_episode_that_does_not_start_equal_is_an_error(in_slots, whims, bad):
  """The message names task, example and seed."""
  played, _, task = whims
  changed = dataclasses.replace(played.examples[0], observation='ggg')
  other = type('Other', (), {**vars(played)})
  other.examples = [changed, *played.examples[1:]]
  with pytest.raises(RuntimeError, match='Whimsical: the episode of example 0'):
    in_slots.InSlots(other, task)


def test_one_turn_is_enough(Played, plain_episodes):
  """Rows that have no second turn never take a slot again."""
  turns = dataclasses.replace(TURNS, max_turns=1)
  task = KeyDoor()
  played = Played(task, turns, size=3)
  plain_episodes.check_plain(played, task)


def test_metrics_and_trace_of_a_round(whims, tmp_path):
  """Calls by kind, live and waiting rows; spans of device, calls, closings."""
  played, found, _ = whims
  metrics = found.episodes.metrics()
  for name in ('reset', 'step'):
    assert metrics[f'calls/{name}/ran'] >= 0 <= metrics[f'calls/{name}/queued']
  assert 0 < metrics['device/slots_share'] <= 1
  assert 0 <= metrics['device/idle_share'] <= 1
  assert metrics['episodes/live'] <= N * G and metrics['calls/timeouts'] == 0
  activity = found.episodes.activity
  activity.recording = True
  with activity.span('device', 'burst', rows=3):
    activity.answered([Answer(Request(1, 2, 3, 'step'), 'timeout', None, 2, 9)])
  assert activity.slowest() == (11, (1, 2, 3, 'step'))
  activity.closed(4)
  activity.write(tmp_path / 'trace.json')
  events = json.loads((tmp_path / 'trace.json').read_text())['traceEvents']
  lines = {e['args']['name'] for e in events if e['name'] == 'thread_name'}
  assert lines == {'device', 'calls 00', 'closings'}
  (burst,) = [e for e in events if e['name'] == 'burst']
  assert burst['args'] == {'rows': 3} and burst['dur'] >= 0


def test_worker_processes_answer_in_their_own_time(in_slots, bad, Played):
  """E0: calls in processes, of which one ends and one takes too long."""
  task = bad.Whimsical(failing={'b': 'exit', 'g': 'hang'})
  first = Played(task, workers=2, seconds=0.5)
  assert {one.kind for one in first.outcomes} > {'ok'}
  found = in_slots.InSlots(first, task, calls=None)
  in_slots.check_same(first, found, log_probs=True)
