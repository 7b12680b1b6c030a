"""EVOLvE (C228): bandit algorithms as teachers, and as hints."""

import jax

from experiments.papers.control import exploitation, policies
from experiments.papers.control.claims import Claim, Results, Row
from experiments.papers.control.exploitation import (
  ARMS,
  METHOD,
  METRIC,
  STEPS,
  TEST,
  bandit,
)
from rl_jax.control import actors, sequence
from rl_jax.control.base import World
from rl_jax.control.wrappers import Hinted
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.types import Array

BATCH = 32


def imitator(world: World, updates: int, key: Array) -> sequence.SequenceActor:
  """A decoder of one layer of width 16 that imitates UCB."""
  model = sequence.model_for(world, layers=1, width=16)
  teacher = policies.teacher_of(world, actors.UCB(arms=ARMS), BATCH, STEPS)
  config = OptimizerConfig(learning_rate=1e-2, total_steps=updates)
  params, _ = policies.imitate(world, model, teacher, config, key)
  return policies.trained_actor(world, model, params, STEPS)


def measure(key_S: Array, scale: float) -> Results:
  """Distilled, guided, and a larger one that nobody guides."""
  updates = max(1, round(150 * scale))

  def one(key: Array) -> dict[str, Array]:
    test = jax.random.fold_in(key, 1)
    hinted = Hinted(world=bandit(), guide=actors.UCB(arms=ARMS))
    larger = exploitation.reinforced(bandit(), METHOD, updates, key)
    found = {
      'guided': policies.regret(
        hinted, imitator(hinted, updates, key), test, TEST, STEPS
      ),
      'distilled': policies.regret(
        bandit(), imitator(bandit(), updates, key), test, TEST, STEPS
      ),
      'larger, by its own reward': policies.regret(
        bandit(), larger, test, TEST, STEPS
      ),
    }
    return found | {
      name: policies.regret(bandit(), actor, test, TEST, STEPS)
      for name, actor in exploitation.players().items()
    }

  return {METRIC: policies.over_seeds(one, key_S)}


ROW = Row(
  'EVOLvE (C228)',
  (
    Claim(
      'hints help: guided is below distilled after as many updates',
      METRIC,
      'guided',
      'distilled',
    ),
    Claim(
      'distilled, small, is below the larger one without a teacher',
      METRIC,
      'distilled',
      'larger, by its own reward',
    ),
    Claim(
      'guided is within 15% of its teacher UCB', METRIC, 'guided', 'UCB', 1.15
    ),
  ),
  measure,
)
