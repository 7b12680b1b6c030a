"""DPT: a decoder that is taught the best arm after any context explores."""

from typing import Any

import jax
import numpy as np

from experiments.papers.control import policies
from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control import actors, rows, sequence, worlds
from rl_jax.control.base import Actor, World
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.types import Array

STEPS, BATCH, TASKS = 30, 32, 400
GREEDY, RANDOM = 'greedy after one pull each', 'random'


def _baselines(world: World) -> dict[str, Actor]:
  """Players by name."""
  arms = rows.num_actions(world)
  players: dict[str, Actor] = {
    'UCB': actors.UCB(arms=arms),
    GREEDY: actors.UCB(arms=arms, alpha=0.0),
    RANDOM: actors.Uniform(space=world.actions),
  }
  if isinstance(world, worlds.LinearBandit):
    variance: Any = (world.features_KE**2).sum(axis=1).mean()
    players['Thompson'] = actors.Thompson(
      arms=arms, prior_mean=0.0, prior_variance=variance
    )
    players['LinUCB'] = actors.LinUCB(
      features_KE=world.features_KE, alpha=world.sigma
    )
  else:
    players['Thompson'] = actors.Thompson(arms=arms)
  return players


def _regrets(world: World, key_S: Array, updates: int) -> dict[str, np.ndarray]:
  """Regret after STEPS pulls by player, of every seed."""
  model = sequence.model_for(world, layers=2, width=32)
  config = OptimizerConfig(learning_rate=3e-3, total_steps=updates)
  roll_in = actors.RollIn(arms=rows.num_actions(world))
  teacher = policies.teacher_of(world, roll_in, BATCH, STEPS)

  def one(key: Array) -> dict[str, Array]:
    params, _ = policies.imitate(
      world, model, teacher, config, key, optimal=True
    )
    players = _baselines(world)
    players['DPT'] = policies.trained_actor(world, model, params, STEPS)
    test = jax.random.fold_in(key, 1)
    return {
      name: policies.regret(world, player, test, TASKS, STEPS)
      for name, player in players.items()
    }

  return policies.over_seeds(one, key_S)


def measure(key_S: Array, scale: float) -> Results:
  """Two worlds."""
  updates = max(1, round(1200 * scale))
  return {
    'regret, 5 arms': _regrets(worlds.Bandit(), key_S, updates),
    'regret, 10 linear arms': _regrets(worlds.LinearBandit(), key_S, updates),
  }


ROW = Row(
  'DPT (C141)',
  (
    Claim(
      "DPT's regret is within 15% of Thompson sampling's",
      'regret, 5 arms',
      'DPT',
      'Thompson',
      1.15,
    ),
    Claim(
      'arms that share a hidden linear structure: DPT is below Thompson '
      'sampling, which does not know it',
      'regret, 10 linear arms',
      'DPT',
      'Thompson',
    ),
    Claim(
      'greedy after one pull each is below DPT at this horizon',
      'regret, 5 arms',
      GREEDY,
      'DPT',
    ),
  ),
  measure,
)
