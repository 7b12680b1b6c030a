"""Episodes in slots: the record of turns in step, in any order of answers."""

import dataclasses
import json
import os

import jax
import numpy as np
import pytest

from rl_jax import decoding
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.decoding.stop import make_stop
from rl_jax.episodes import slot_runner
from rl_jax.episodes.calls import Answer, Calls, Request
from rl_jax.episodes.journal import NumberedCalls
from rl_jax.episodes.turns import TurnConfig
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import Program
from rl_jax.verification.pool import VerifierConfig
from rl_jax.verification.sessions import SessionPool
from rl_jax.worlds import Arithmetic, KeyDoor

N, G, T = 3, 4, 32
TURNS = TurnConfig(max_turns=4, max_turn_tokens=3, max_observation_tokens=6)
EXACT = (
  *('response_BT', 'kind_BT', 'length_B', 'finished_B', 'turn_BT'),
  *('mask_BT', 'valid_B', 'policy_version_B', 'row_id_B2'),
)


@pytest.fixture(name='bad', scope='module')
def _bad():
  """The module of misbehaving environments."""
  with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(os.path.dirname(os.path.dirname(__file__)))
    import misbehaving_environments

    yield misbehaving_environments


class CallsHere(Calls):
  """Calls that are made in this process, one in each `poll`, oldest first.

  make: request -> (outcome, reply).
  """

  def __init__(self, make):
    self._make, self._waiting = make, []

  def submit(self, request):
    self._waiting.append(request)

  def poll(self, timeout):
    """The answer of the oldest call; it has no time limit."""
    if not self._waiting:
      return []
    request = min(self._waiting, key=lambda one: one.key[:3])
    self._waiting.remove(request)
    return [Answer(request, *self._make(request))]

  def close(self):
    self._waiting.clear()


class InSlots:
  """The round of a `Played`, again in slots; calls: made of a pool's function.

  calls: None: those of runs, in worker processes. It has the fields of Played
  that tests read.
  """

  def __init__(
    self, played, task, calls=CallsHere, slots=None, turns=TURNS, seconds=0.5
  ):
    mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
    pool = SessionPool(task, 0 if calls else 3, seconds)

    def make(request):
      reply = pool.ask([request.payload])[0]
      return ('ok' if reply.error is None else 'failed'), reply

    self.engine = make_engine(
      played.model,
      decoding.SamplingConfig(eos_ids=played.tokenizer.eos_ids),
      EngineConfig(
        group_size=G,
        max_response_tokens=played.host.response_BT.shape[1],
        turns=turns,
        free_turns=True,
        slots=slots,
      ),
      mesh,
    )
    journal = NumberedCalls(pool)
    if calls is not None:
      self.queue = journal._calls._calls = calls(make)
    self.episodes = slot_runner.SlotRunner(
      task,
      journal,
      tokenizer=played.tokenizer,
      stop=make_stop(played.tokenizer),
      turns=turns,
      settings=VerifierConfig(on_turn_timeout='invalid', failed_share=1.0),
    )
    with jax.transfer_guard('disallow'):
      traj = self.engine.start(*played.arrays, 0, 0)
      self.traj = self.episodes.play(
        self.engine, played.params, traj, played.key, played.examples
      )
    self.outcomes = self.episodes.outcomes(self.traj, played.examples, None)
    self.host = jax.device_get(self.traj)
    self.episodes.close()


def check_same(played, found, log_probs):
  """The records are equal; log_probs: whether these are, too, or E2."""
  for name in EXACT:
    np.testing.assert_array_equal(
      getattr(played.host, name), getattr(found.host, name), err_msg=name
    )
  for name in ('reward_BK', 'calls_BK', 'state_BK', 'action_BK'):
    np.testing.assert_array_equal(
      getattr(played.host.turns, name), getattr(found.host.turns, name)
    )
  assert played.host.extras.keys() == found.host.extras.keys()
  for name, value in played.host.extras.items():
    np.testing.assert_array_equal(value, found.host.extras[name])
  assert played.outcomes == found.outcomes
  for row in range(len(played.outcomes)):
    assert played.episodes.shown()(row) == found.episodes.shown()(row)
  mine, other = (x.host.logp_behaviour_BT for x in (played, found))
  if log_probs:
    np.testing.assert_array_equal(mine, other)
  else:
    np.testing.assert_allclose(mine, other, atol=1e-5)


def test_a_coroutine_whose_calls_are_written_down(Played, monkeypatch):
  """E0 against turns in step: it calls before its first turn and between."""
  path = os.path.dirname(os.path.dirname(__file__))
  monkeypatch.syspath_prepend(path)
  import agents

  task = Program(
    task=Arithmetic(digits=1), agent=agents.counting, chat=False, num_train=8
  )
  played = Played(task, workers=1, seconds=60.0)
  found = InSlots(played, task, calls=None, seconds=60.0)
  check_same(played, found, log_probs=False)
  assert {one.kind for one in found.outcomes} == {'ok'}
  (first, second) = found.episodes.shown()(0)['turns']
  assert first['observation'] == '4='
  assert first['asked'] == [['policy.call', '{"answer": 5}']]
  assert second['observation'] == '5='


@pytest.fixture(name='whims', scope='module')
def _whims(Played, bad):
  """(a round in step, the same in slots whose calls are answered at once)."""
  task = bad.Whimsical()
  played = Played(task)
  return played, InSlots(played, task), task


def test_the_record_is_that_of_turns_in_step(whims):
  """E0; E2 for log-probs, as known tokens are fed in other chunks."""
  played, found, _ = whims
  check_same(played, found, log_probs=False)
  turns = played.host.turn_BT.max(axis=1) + 1
  assert turns.max() > 2 and len(set(turns)) > 1
  known, metrics = played.episodes.metrics(), found.episodes.metrics()
  for name in known.keys() - {'time/environment_seconds'}:
    assert metrics[name] == known[name], name


@pytest.mark.parametrize('seed', range(6))
def test_the_order_of_answers_changes_nothing(whims, delayed_calls, seed):
  """E0, also the log-probs: seeded delays, a few calls at a time."""
  played, first, task = whims

  class Ticking(delayed_calls.DelayedCalls):
    """A clock that each look at it moves."""

    def poll(self, timeout):
      return super().poll(0.4 if timeout == 0.0 else timeout)

  def calls(make):
    return Ticking(make, seed=seed, most=(1, 3, 100)[seed % 3])

  found = InSlots(played, task, calls)
  check_same(first, found, log_probs=True)
  order = [(r.sample, r.turn) for r in found.queue.made]
  assert len(set(order)) == len(order)  # nothing is asked twice
  if seed % 3:
    assert order != sorted(order, key=lambda one: (one[1], one[0]))


@pytest.mark.parametrize('slots', [1, 5])
def test_fewer_slots_than_rows(whims, slots):
  """E2: the number of slots is a shape of the program."""
  played, _, task = whims
  found = InSlots(played, task, slots=slots)
  check_same(played, found, log_probs=False)
  assert found.episodes.metrics()['device/slots_share'] > 0.5


def test_failures_cost_their_own_rows(bad, Played):
  """Wrong replies in the middle of episodes, and a prompt that never starts."""
  failing = {'b': 'raise', 'g': 'nan', 'd': 'text'}
  task = bad.Whimsical(failing=failing, unable={1: 'raise'})
  played = Played(task)
  found = InSlots(played, task)
  failed = [one.error is not None for one in played.outcomes]
  assert all(failed[G : 2 * G]) and 0 < sum(failed) - G < 2 * G
  check_same(played, found, log_probs=False)


def test_an_episode_that_does_not_start_equal_is_an_error(whims, bad):
  """The message names task, example and seed."""
  played, _, task = whims
  changed = dataclasses.replace(played.examples[0], observation='ggg')
  other = type('Other', (), {**vars(played)})
  other.examples = [changed, *played.examples[1:]]
  with pytest.raises(RuntimeError, match='Whimsical: the episode of example 0'):
    InSlots(other, task)


def test_one_turn_is_enough(Played):
  """Rows that have no second turn never take a slot again."""
  turns = dataclasses.replace(TURNS, max_turns=1)
  task = KeyDoor()
  played = Played(task, turns, size=3)
  found = InSlots(played, task, turns=turns)
  check_same(played, found, log_probs=False)


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


def test_worker_processes_answer_in_their_own_time(bad, Played):
  """E0: calls in processes, of which one ends and one takes too long."""
  task = bad.Whimsical(failing={'b': 'exit', 'g': 'hang'})
  first = Played(task, workers=2, seconds=0.5)
  assert {one.kind for one in first.outcomes} > {'ok'}

  found = InSlots(first, task, calls=None)
  check_same(first, found, log_probs=False)
