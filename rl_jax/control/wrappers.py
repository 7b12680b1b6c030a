"""Worlds on other worlds: what is observed, kept or allowed is different."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rl_jax.control.actors import UCB, Pulls
from rl_jax.control.base import Box, Space, Step, World, declared
from rl_jax.types import Array


@declared
class Wrapped(World):
  """The world itself: base of worlds that change something of it."""

  world: World

  @property
  def observations(self) -> Space:
    """The same as of the world."""
    return self.world.observations

  @property
  def actions(self) -> Space:
    """The same as of the world."""
    return self.world.actions

  def reset(self, key: Array) -> Any:
    """The same as of the world."""
    return self.world.reset(key)

  def begin(self, state: Any, key: Array) -> Any:
    """The same as of the world."""
    return self.world.begin(state, key)

  def observe(self, state: Any) -> Array:
    """The same as of the world."""
    return self.world.observe(state)

  def step(
    self, state: Any, action: Array, key: Array
  ) -> tuple[Any, Array, Array]:
    """The same as of the world."""
    return self.world.step(state, action, key)

  def optimal(self, state: Any) -> Array:
    """The same as of the world."""
    return self.world.optimal(state)

  def regret(self, state: Any, action: Array) -> Array:
    """The same as of the world."""
    return self.world.regret(state, action)

  def render(self, state: Any) -> Array:
    """The same as of the world."""
    return self.world.render(state)


@declared
class SameTask(Wrapped):
  """The task of one key, whatever the key of the history: for groups."""

  key: Array

  def reset(self, key: Array) -> Any:
    """Drawn from the field, not from the argument."""
    del key
    return self.world.reset(self.key)


@declared
class Redrawn(Wrapped):
  """A new task at every step, so that there is nothing to remember."""

  def step(
    self, state: Any, action: Array, key: Array
  ) -> tuple[Any, Array, Array]:
    """The reward is of the task so far."""
    # Two keys: a reward would else tell what the next task is.
    step_key, task_key = jax.random.split(key)
    _, reward, done = self.world.step(state, action, step_key)
    return self.world.reset(task_key), reward, done


class HintedState(NamedTuple):
  """The state of a bandit, and the pulls so far."""

  inner: Any
  pulls: Pulls


@declared
class Hinted(Wrapped):
  """A bandit that shows the two terms of UCB for every arm: mean and bonus.

  The bonus of an arm without a pull, which is infinite, is shown as `most`.
  Source: EVOLvE, banditbench/agents/guides.py.
  """

  guide: UCB
  most: float = 2.0

  @property
  def observations(self) -> Space:
    """Means, then bonuses."""
    return Box(2 * self.guide.arms)

  def reset(self, key: Array) -> HintedState:
    """No pulls."""
    return HintedState(self.world.reset(key), Pulls.none(self.guide.arms))

  def begin(self, state: HintedState, key: Array) -> HintedState:
    """The pulls are kept."""
    return state._replace(inner=self.world.begin(state.inner, key))

  def observe(self, state: HintedState) -> Array:
    """The two terms, [2 K]."""
    bonus_K = jnp.minimum(self.guide.bonus(state.pulls), self.most)
    return jnp.concatenate([state.pulls.mean_K, bonus_K])

  def step(
    self, state: HintedState, action: Array, key: Array
  ) -> tuple[HintedState, Array, Array]:
    """Counts the pull."""
    inner, reward, done = self.world.step(state.inner, action, key)
    obs = jnp.int32(0)
    pulls = state.pulls.add(Step(obs, action, reward, obs, done, done))
    return HintedState(inner, pulls), reward, done

  def optimal(self, state: HintedState) -> Array:
    """The same as of the world."""
    return self.world.optimal(state.inner)

  def regret(self, state: HintedState, action: Array) -> Array:
    """The same as of the world."""
    return self.world.regret(state.inner, action)
