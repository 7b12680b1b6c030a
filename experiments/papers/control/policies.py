"""Training and tests of sequence policies that several rows share."""

from collections.abc import Callable
import functools
from typing import Any

import jax

from rl_jax.control import rows, sequence, training
from rl_jax.control.base import Actor, World
from rl_jax.control.unroll import Steps, unroll
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.learning.statistics import Forward
from rl_jax.method import Method
from rl_jax.models.transformer import ModelConfig
from rl_jax.pieces import losses
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.types import Array

SUPERVISED = Method(
  losses=(losses.NegativeLogLikelihood(),), aggregation=TokenMean()
)


def play(world: World, actor: Actor, key_B: Array, steps: int) -> Steps:
  """One episode of each key."""
  return jax.vmap(lambda key: unroll(world, actor, key, 1, steps))(key_B)


def regret(
  world: World, actor: Actor, key: Array, tasks: int, steps: int
) -> Array:
  """The mean regret of an episode over tasks."""
  key_B = jax.random.split(key, tasks)
  return play(world, actor, key_B, steps).regret.sum(axis=1).mean()


def imitate(
  world: World,
  model: ModelConfig,
  teacher: Callable[[Array], Steps],
  config: OptimizerConfig,
  key: Array,
  *,
  optimal: bool = False,
) -> tuple[Any, Any]:
  """Parameters that imitate the teacher's actions, or the optimal ones."""

  def data(params: Any, key: Array):
    del params
    return rows.trajectories(world, teacher(key), optimal=optimal)

  params = sequence.init_params(world, model, key)
  return training.fit(
    Forward(model=model), SUPERVISED, data, params, key, config
  )


def over_seeds(measure: Callable[[Array], Any], key_S: Array) -> Any:
  """measure of every seed, as one program."""
  return jax.device_get(jax.jit(jax.vmap(measure))(key_S))


def trained_actor(
  world: World, model: ModelConfig, params: Any, steps: int
) -> sequence.SequenceActor:
  """Draws at temperature 1."""
  return sequence.SequenceActor(
    world=world, params=params, model=model, steps=steps
  )


def teacher_of(
  world: World, actor: Actor, batch: int, steps: int
) -> Callable[[Array], Steps]:
  """Key -> histories of an actor."""

  @functools.wraps(play)
  def one(key: Array) -> Steps:
    return play(world, actor, jax.random.split(key, batch), steps)

  return one
