"""Worlds of gymnax and XLand-MiniGrid; each package is an extra."""

import math
from typing import Any

import jax.numpy as jnp

from rl_jax import optional
from rl_jax.control.base import Box, Discrete, Space, World, declared
from rl_jax.types import Array, static


@declared
class Gymnax(World):
  """An environment of gymnax; every episode begins by its own reset.

  Observations are flattened. Real actions within [-1, 1] are scaled to the
  environment's limits. An episode that it truncates counts as done.
  """

  env: Any = static()
  params: Any

  @property
  def observations(self) -> Space:
    """All numbers of an observation."""
    return Box(math.prod(self.env.observation_space(self.params).shape))

  @property
  def actions(self) -> Space:
    """Discrete, or a Box."""
    space = self.env.action_space(self.params)
    return Box(math.prod(space.shape)) if space.shape else Discrete(space.n)

  def reset(self, key: Array) -> Any:
    """(observation, state) of the environment."""
    obs, state = self.env.reset_env(key, self.params)
    return jnp.ravel(obs).astype(jnp.float32), state

  def begin(self, state: Any, key: Array) -> Any:
    """A reset."""
    del state
    return self.reset(key)

  def observe(self, state: Any) -> Array:
    """The last observation."""
    return state[0]

  def step(
    self, state: Any, action: Array, key: Array
  ) -> tuple[Any, Array, Array]:
    """One step, without the environment's own reset."""
    space = self.env.action_space(self.params)
    if space.shape:
      low, high = (
        jnp.broadcast_to(x, space.shape) for x in (space.low, space.high)
      )
      action = low + (action.reshape(space.shape) + 1) / 2 * (high - low)
    obs, after, reward, ended, _ = self.env.step_env(
      key, state[1], action, self.params
    )
    done = ended | self.env.is_truncated(after, self.params)
    obs = jnp.ravel(obs).astype(jnp.float32)
    return (obs, after), jnp.asarray(reward, jnp.float32), done


def from_gymnax(name: str, **params: Any) -> Gymnax:
  """The world of that name, with other parameters.

  Raises: ImportError naming the extra rl_jax[control].
  """
  gymnax = optional.require('gymnax', 'from_gymnax (rl_jax[control])')
  env, default = gymnax.make(name)
  return Gymnax(env=env, params=default.replace(**params))


@declared
class MiniGrid(World):
  """An environment of XLand-MiniGrid, whose state is its time step.

  Observations are the cells that are seen, as numbers.
  """

  env: Any = static()
  params: Any

  @property
  def observations(self) -> Space:
    """All numbers of an observation."""
    return Box(math.prod(self.env.observation_shape(self.params)))

  @property
  def actions(self) -> Space:
    """The six or so actions."""
    return Discrete(self.env.num_actions(self.params))

  def reset(self, key: Array) -> Any:
    """The first time step."""
    return self.env.reset(self.params, key)

  def begin(self, state: Any, key: Array) -> Any:
    """A reset."""
    del state
    return self.reset(key)

  def observe(self, state: Any) -> Array:
    """The observation of the time step."""
    return jnp.ravel(state.observation).astype(jnp.float32)

  def step(
    self, state: Any, action: Array, key: Array
  ) -> tuple[Any, Array, Array]:
    """The time step has the random numbers."""
    del key
    after = self.env.step(self.params, state, action)
    return after, jnp.asarray(after.reward, jnp.float32), after.last()


def from_xminigrid(name: str) -> MiniGrid:
  """The world of that name.

  Raises: ImportError naming the extra rl_jax[control].
  """
  package = optional.require('xminigrid', 'from_xminigrid (rl_jax[control])')
  env, params = package.make(name)
  return MiniGrid(env=env, params=params)
