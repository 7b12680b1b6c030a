"""A round of a tiny model once more, beside the same of `Played`.

Load by the fixture `in_slots`.
"""

import jax
import numpy as np

from rl_jax import decoding
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.decoding.stop import make_stop
from rl_jax.episodes import slot_runner
from rl_jax.episodes.calls import Answer, Calls
from rl_jax.episodes.journal import NumberedCalls
from rl_jax.episodes.turn_taking import TurnTaking
from rl_jax.episodes.turns import TurnConfig
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.runtime.writer import sole_writer
from rl_jax.verification.pool import VerifierConfig
from rl_jax.verification.sessions import SessionPool

G = 4
TURNS = TurnConfig(max_turns=4, max_turn_tokens=3, max_observation_tokens=6)
EXACT = (
  *('response_BT', 'kind_BT', 'length_B', 'finished_B', 'turn_BT'),
  *('mask_BT', 'valid_B', 'policy_version_B', 'row_id_B2'),
)


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
  """The round of a `Played`, again; calls: made of a pool's function.

  calls: None: those of runs, in worker processes. inside: (arrays of
  trajectories, Recorded) of rows that continue. more: arguments of the runner.
  It has the fields of Played that tests read.
  """

  def __init__(
    self,
    played,
    task,
    calls=CallsHere,
    slots=None,
    turns=TURNS,
    seconds=0.5,
    workdir=None,
    cache_tokens=None,
    inside=None,
    **more,
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
        slots=slots,
        cache_tokens=cache_tokens,
      ),
      mesh,
    )
    journal = NumberedCalls(pool, workdir, '', sole_writer())
    if calls is not None:
      self.queue = journal._calls._calls = calls(make)
    taking = TurnTaking(
      task,
      tokenizer=played.tokenizer,
      stop=make_stop(played.tokenizer),
      turns=turns,
      settings=VerifierConfig(on_turn_timeout='invalid', failed_share=1.0),
    )
    self.episodes = slot_runner.SlotRunner(taking, journal, **more)
    with jax.transfer_guard('disallow'):
      traj, recorded = self.engine.start(*played.arrays, 0, 0), None
      if inside is not None:
        arrays, recorded = inside
        traj = traj.replace(**processes.put(arrays, mesh_lib.rows(mesh)))
      self.traj = self.episodes.play(
        self.engine, played.params, traj, played.key, played.examples, recorded
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
