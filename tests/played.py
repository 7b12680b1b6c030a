"""Episodes, and one round of a tiny model.

Load by the fixtures `make_episodes` and `Played`.
"""

import jax

from rl_jax import decoding, models
from rl_jax.decoding.engine import EngineConfig, make_engine
from rl_jax.decoding.stop import make_stop
from rl_jax.episodes.episode_prompts import EpisodePrompts
from rl_jax.episodes.journal import NumberedCalls
from rl_jax.episodes.partners import NO_PARTNERS
from rl_jax.episodes.slot_runner import SlotRunner
from rl_jax.episodes.turn_taking import TurnTaking
from rl_jax.episodes.turns import TurnConfig
from rl_jax.models import params as params_lib
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime import processes
from rl_jax.verification.pool import VerifierConfig
from rl_jax.verification.sessions import SessionPool

N, G, T = 3, 4, 32
TURNS = TurnConfig(max_turns=4, max_turn_tokens=3, max_observation_tokens=6)
KEY = jax.random.key(5)


def make_episodes(task, tokenizer, turns, pool=None, *, settings=None, **more):
  """Episodes without a journal, in this process if no pool is given.

  more: arguments of SlotRunner.
  """
  pool = SessionPool(task) if pool is None else pool
  taking = TurnTaking(
    task,
    tokenizer=tokenizer,
    stop=make_stop(tokenizer),
    turns=turns,
    settings=settings or VerifierConfig(),
  )
  return SlotRunner(taking, NumberedCalls(pool), **more)


class Played:
  """A round of a task: trajectories, outcomes and what the environments say."""

  def __init__(
    self,
    task,
    turns=TURNS,
    *,
    workers=0,
    seconds=10.0,
    size=T,
    num_prompts=N,
    opponent=None,
    seed=1,
    partners=NO_PARTNERS,
    on_timeout='invalid',
    failed_share=1.0,
    **sampling,
  ):
    mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
    tokenizer = CharTokenizer(task.alphabet)
    self.model = model = models.ModelConfig(
      vocab_size=tokenizer.vocab_size,
      num_layers=1,
      width=16,
      num_heads=2,
      num_kv_heads=1,
      head_size=8,
      mlp_size=24,
    )
    self.params = params_lib.init_params(model, jax.random.key(seed))
    if opponent is not None:
      other = params_lib.init_params(model, jax.random.key(opponent))
      self.params = {**self.params, 'policies': {'opponent': other}}
    self.engine = make_engine(
      model,
      decoding.SamplingConfig(eos_ids=tokenizer.eos_ids, **sampling),
      EngineConfig(group_size=G, max_response_tokens=size, turns=turns),
      mesh,
    )
    self.tokenizer, self.turns = tokenizer, turns
    self.key = processes.put(KEY, mesh_lib.replicated(mesh))
    self.params = processes.put(self.params, mesh_lib.replicated(mesh))
    pool = SessionPool(task, workers, seconds)
    self.episodes = make_episodes(
      task,
      tokenizer,
      turns,
      pool,
      partners=partners,
      settings=VerifierConfig(
        on_turn_timeout=on_timeout, failed_share=failed_share
      ),
    )
    try:
      prompts = EpisodePrompts(
        task, 'train', tokenizer, 16, begin=self.episodes.open
      )
      self.examples, *self.arrays = prompts.batch(range(num_prompts))
      with jax.transfer_guard('disallow'):
        traj = self.engine.start(*self.arrays, 0, 0)
        self.traj = self.episodes.play(
          self.engine, self.params, traj, self.key, self.examples
        )
      self.outcomes = self.episodes.outcomes(self.traj, self.examples, None)
      self.counts = pool.counts()
    finally:
      self.episodes.close()
    self.host = jax.device_get(self.traj)

  def turn_texts(self, row, kind):
    """Decoded tokens of each turn of one kind."""
    here = (self.host.kind_BT[row] == kind)[None]
    ids, turn = self.host.response_BT[row], self.host.turn_BT[row]
    return [
      self.tokenizer.decode(ids[(here & (turn == k))[0]])
      for k in range(turn.max() + 1)
    ]
