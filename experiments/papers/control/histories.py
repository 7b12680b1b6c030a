"""AD and AD + LHF: learning histories of Q-learners, some of them random."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.papers.control import policies
from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control import actors, filtering, sequence, worlds
from rl_jax.control.base import declared
from rl_jax.control.unroll import Steps, episode_returns, unroll
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.types import Array

# Room, horizon, goals and source runs are those of the specification: with
# the 20 goals of a room of 5x5 nothing was learned for held-out ones.
SIZE, HORIZON, EPISODES, WINDOW = 9, 20, 80, 8
RUNS, RANDOM, BATCH = 20, 0.3, 16
HELD_OUT = 8  # goals
STRIDE = EPISODES // WINDOW
AD, LHF = 'AD', 'AD + LHF'


@declared
class AimedRoom(worlds.DarkRoom):
  """A dark room whose goal is given, so that vmap over goals is possible."""

  aim: Array

  def reset(self, key: Array) -> worlds.RoomState:
    """Not drawn."""
    goal_2 = jnp.stack(jnp.divmod(self.aim, self.size))
    return super().reset(key)._replace(goal_2=goal_2)


def sources(aim_G: Array, key: Array) -> Steps:
  """Learning histories, [G, R, T, ...]."""
  learner = actors.QLearner(
    observations=SIZE**2, actions=5, random=RANDOM, decay=0.99
  )

  def one(aim: Array, key: Array) -> Steps:
    room = AimedRoom(size=SIZE, aim=aim)
    return unroll(room, learner, key, EPISODES, HORIZON)

  key_GR = jax.random.split(key, (len(aim_G), RUNS))
  return jax.vmap(jax.vmap(one, in_axes=(None, 0)))(aim_G, key_GR)


def kept(steps: Steps) -> Array:
  """Probabilities with which LHF keeps the runs of a goal, [G, R]."""
  return_GRE = episode_returns(steps, EPISODES)
  best_G = return_GRE.max(axis=(1, 2))
  utility_GR = jax.vmap(lambda x, best: filtering.utility(x, best)[0])(
    return_GRE, best_G
  )
  return jax.vmap(filtering.keep_probabilities)(utility_GR)


def windows(steps: Steps, weight_GR: Array, key: Array) -> Steps:
  """Every STRIDE-th episode of drawn histories, [B, WINDOW * HORIZON]."""
  goal_key, run_key, first_key = jax.random.split(key, 3)
  G = weight_GR.shape[0]
  goal_B = jax.random.randint(goal_key, (BATCH,), 0, G)
  logits_BR = jnp.log(weight_GR[goal_B] + 1e-9)
  run_B = jax.random.categorical(run_key, logits_BR)
  first_B = jax.random.randint(first_key, (BATCH,), 0, STRIDE)
  episode_BW = first_B[:, None] + STRIDE * jnp.arange(WINDOW)[None]
  place_BWH = episode_BW[..., None] * HORIZON + jnp.arange(HORIZON)[None, None]
  place_BT = place_BWH.reshape(BATCH, -1)
  rows = goal_B[:, None], run_B[:, None], place_BT
  return jax.tree.map(lambda x: x[rows], steps)


def measure(key_S: Array, scale: float) -> Results:
  """Both arms of every seed in one program."""
  updates = max(1, round(1000 * scale))
  world = worlds.DarkRoom(size=SIZE)
  model = sequence.model_for(world, layers=2, width=32)
  config = OptimizerConfig(
    learning_rate=3e-3, warmup_steps=100, total_steps=updates
  )
  T = WINDOW * HORIZON

  def one(key: Array) -> dict[str, dict[str, Array]]:
    order = jax.random.permutation(jax.random.fold_in(key, 1), SIZE**2)
    test_G, train_G = order[:HELD_OUT], order[HELD_OUT:]
    steps = sources(train_G, jax.random.fold_in(key, 2))
    weight_GR = kept(steps)

    def trained(weight_GR: Array) -> Array:
      params, _ = policies.imitate(
        world, model, lambda k: windows(steps, weight_GR, k), config, key
      )
      actor = policies.trained_actor(world, model, params, T)

      def play(aim: Array, key: Array) -> Array:
        room = AimedRoom(size=SIZE, aim=aim)
        return episode_returns(
          unroll(room, actor, key, WINDOW, HORIZON), WINDOW
        )

      key_GR = jax.random.split(jax.random.fold_in(key, 3), (HELD_OUT, 16))
      return_GRE = jax.vmap(jax.vmap(play, in_axes=(None, 0)))(test_G, key_GR)
      return return_GRE.mean(axis=(0, 1))

    arms = {AD: jnp.ones_like(weight_GR), LHF: weight_GR}
    return_AE = jax.vmap(trained)(jnp.stack([*arms.values()]))
    source_E = episode_returns(steps, EPISODES).mean(axis=(0, 1))
    found = {'mean return': {}, 'return of an episode': {}}
    for name, return_E in zip(arms, return_AE, strict=True):
      found['mean return'][name] = return_E.mean()
      found['return of an episode'] |= {
        f'{name}, first': return_E[0],
        f'{name}, last': return_E[-1],
      }
    found['return of an episode']['source, last'] = source_E[-1]
    return found

  return jax.tree.map(np.array, policies.over_seeds(one, key_S))


ROW = Row(
  'AD and LHF (C139), dark room 9x9, 30% random agents',
  (
    Claim(
      'filtered histories (LHF) give a higher mean test return than all (AD)',
      'mean return',
      AD,
      LHF,
    ),
    Claim(
      'AD + LHF improves in context: the last episode is twice the first',
      'return of an episode',
      f'{LHF}, first',
      f'{LHF}, last',
      0.5,
    ),
  ),
  measure,
)
