"""Rounds of episodes in slots, in this process or in several ones.

Answers come in seeded orders. Prints a line of JSON for each order: digests of
what all processes have, and how often the environments of this one were called.
"""

import hashlib
import json

from absl import app, flags
import delayed_calls
import jax
import misbehaving_environments
import numpy as np

from experiments.flags import processes as process_flags
from rl_jax import decoding
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.decoding.stop import make_stop
from rl_jax.episodes import slot_runner
from rl_jax.episodes.episode_prompts import EpisodePrompts
from rl_jax.episodes.journal import NumberedCalls
from rl_jax.episodes.partners import NO_PARTNERS, Asked, Partners
from rl_jax.episodes.turn_taking import TurnTaking
from rl_jax.episodes.turns import TurnConfig
from rl_jax.judging.judges import Reader
from rl_jax.models import params as params_lib
from rl_jax.models import presets
from rl_jax.models.partner_source import Partner
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.verification.pool import VerifierConfig
from rl_jax.verification.sessions import SessionPool

N, G, P, T = 4, 4, 16, 32
TURNS = TurnConfig(max_turns=4, max_turn_tokens=3, max_observation_tokens=6)
NAMES = ('response_BT', 'kind_BT', 'length_B', 'turn_BT', 'context_BT')


class Rounds:
  """Rounds of one task and one model on a mesh of two devices.

  A partner, if the task asks one, is the same model, without draws.
  """

  def __init__(self, task, slots):
    self.task, self.tokenizer = task, CharTokenizer(task.alphabet)
    self.model = presets.small(
      vocab_size=self.tokenizer.vocab_size,
      num_layers=1,
      width=16,
      num_heads=2,
      head_size=8,
      mlp_size=16,
    )
    axis = 'tensor' if flags.FLAGS.tensor else 'fsdp'
    self.mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(**{axis: 2}))
    begun = params_lib.init_params(self.model, jax.random.key(0))
    self.params, self.key = processes.put(
      (begun, jax.random.key(3)), mesh_lib.replicated(self.mesh)
    )
    self.engine = make_engine(
      self.model,
      decoding.SamplingConfig(eos_ids=self.tokenizer.eos_ids),
      EngineConfig(
        group_size=G,
        max_response_tokens=T,
        turns=TURNS,
        slots=slots,
        cache_tokens=flags.FLAGS.cache_tokens,
      ),
      self.mesh,
    )

  def partners(self):
    """The partner 'oracle', which reads four questions a call."""
    stop = make_stop(self.tokenizer)
    source = Partner(path='unread', name='oracle', max_tokens=3)
    limits = EngineConfig(group_size=1, max_response_tokens=3)
    sampling = decoding.SamplingConfig.ended_by(stop, greedy=True)
    texts = Reader(
      model=self.model,
      mesh=self.mesh,
      pad_id=self.tokenizer.pad_id,
      rows=4,
      engine=make_engine(self.model, sampling, limits, self.mesh),
      stop=stop,
      key=self.key,
      width=3,
    )
    encode = self.tokenizer.encode
    oracle = Asked(source, self.params, encode, encode, texts, _unasked, 4)
    return Partners([oracle])

  def play(self, seed, slow):
    """Returns the line of a round; slow: the process with slow calls, or -1."""
    with jax.set_mesh(self.mesh), jax.transfer_guard('disallow'):
      times = flags.FLAGS.times if slow == processes.index() else 1.0
      return self._play(seed, times)

  def _play(self, seed, factor):
    pool = SessionPool(self.task, 0)
    journal = NumberedCalls(pool)

    def make(request):
      (reply,) = pool.ask([request.payload])
      return ('ok' if reply.error is None else 'failed'), reply

    calls = delayed_calls.DelayedCalls(
      make,
      seed=seed,
      # A look at the clock moves it by a millisecond.
      delay=lambda rng: 0.01 * factor * rng.paretovariate(1.5),
      most=(2, 100)[seed % 2],
    )
    journal._calls._calls = calls
    turns = TurnTaking(
      self.task,
      tokenizer=self.tokenizer,
      stop=make_stop(self.tokenizer),
      turns=TURNS,
      settings=VerifierConfig(failed_share=flags.FLAGS.failed_share),
    )
    runner = slot_runner.SlotRunner(
      turns,
      journal,
      partners=self.partners() if self.task.traits.asks else NO_PARTNERS,
      host_tokens=flags.FLAGS.host_tokens,
    )
    prompts = EpisodePrompts(
      self.task, 'train', self.tokenizer, P, begin=runner.open
    )
    examples, *arrays = prompts.batch(np.arange(N // prompts.players))
    calls.made.clear()
    traj = self.engine.start(*arrays, 0, 0)
    try:
      traj = runner.play(self.engine, self.params, traj, self.key, examples)
    except RuntimeError as error:
      return {'error': str(error)}
    return {
      'tokens': digest([getattr(traj, name) for name in NAMES]),
      'log_probs': digest([traj.logp_behaviour_BT]),
      'outcomes': [
        [one.kind, one.components]
        for one in runner.outcomes(traj, examples, ())
      ],
      'sum': float(processes.read(traj.logp_behaviour_BT).sum()),
      'made': sorted([r.sample, r.turn] for r in calls.made),
      'on_host': runner.host_cache.most,
      'timeouts': runner.metrics()['calls/timeouts'],
      'questions': runner.metrics().get('episode/questions', 0.0),
    }


def _unasked(params, pairs):
  raise AssertionError('no question has candidates')


def digest(arrays):
  """A text that tells apart the bits of arrays; None is left out."""
  host = processes.read([x for x in arrays if x is not None])
  data = b''.join(np.ascontiguousarray(x).tobytes() for x in host)
  return hashlib.sha256(data).hexdigest()


def main(argv):
  """Prints a JSON line for each round."""
  del argv
  if flags.FLAGS.num_processes:
    process_flags.start()
  task = misbehaving_environments.RallyTask(begins='seed')
  if not flags.FLAGS.game:
    failing = json.loads(flags.FLAGS.failing)
    task = misbehaving_environments.Whimsical(failing=failing)
  if flags.FLAGS.asking:
    task = misbehaving_environments.Asking()
  rounds = Rounds(task, flags.FLAGS.slots)
  for seed in range(flags.FLAGS.orders):
    print(json.dumps(rounds.play(seed, flags.FLAGS.slow)), flush=True)


if __name__ == '__main__':
  process_flags.define_flags()
  flags.DEFINE_integer('orders', 1, 'Rounds, each with its own order.')
  flags.DEFINE_integer('slow', -1, 'The process whose calls are slow.')
  flags.DEFINE_float('times', 30.0, 'As long as others its calls take.')
  flags.DEFINE_bool('game', False, 'Games of two players.')
  flags.DEFINE_bool('tensor', False, 'Each row is on both devices.')
  flags.DEFINE_bool('asking', False, 'Environments that ask a partner.')
  flags.DEFINE_integer('slots', None, 'Of all devices.')
  flags.DEFINE_float('failed_share', 0.5, 'See VerifierConfig.')
  flags.DEFINE_integer('cache_tokens', None, 'See RolloutConfig.')
  flags.DEFINE_integer('host_tokens', 0, 'Of rows on the host.')
  flags.DEFINE_string('failing', '{}', 'Letters of actions that fail.')
  app.run(main)
