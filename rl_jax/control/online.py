"""The learners of `offline` on their own data: episodes, then updates."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.control import offline
from rl_jax.control.base import Actor, World, declared
from rl_jax.control.offline import DataSet, Offline, State
from rl_jax.control.unroll import unroll
from rl_jax.types import Array


@declared
class Noisy(Actor):
  """A learner that explores with normal noise."""

  learner: Offline
  params: Any
  noise: float = 0.3

  def act(self, memory: Any, obs: Array, key: Array) -> tuple[Array, Any]:
    """The mean with noise, within [-1, 1]."""
    mean = self.learner.mean(self.params, obs)
    noise = self.noise * jax.random.normal(key, mean.shape)
    return jnp.clip(mean + noise, -1, 1), memory


def _empty(world: World, size: int) -> DataSet:
  """Zeros in place of so many steps."""
  S, A = world.observations.width, world.actions.width
  return DataSet(
    obs=jnp.zeros((size, S)),
    action=jnp.zeros((size, A)),
    reward=jnp.zeros(size),
    next_obs=jnp.zeros((size, S)),
    done=jnp.zeros(size),
  )


def train(
  world_at: Callable[[Array], World],
  learner: Offline,
  key: Array,
  *,
  episodes: int,
  horizon: int,
  noise: float = 0.3,
  offline_start: tuple[State, DataSet] | None = None,
) -> tuple[State, Array]:
  """The state after so many episodes, and their returns [episodes].

  world_at: share of the training that has passed, from 0 -> the world. After an
  episode come as many updates as it had steps, on all steps so far.
  offline_start: a learner's state, and its data, to which the steps are added.

  Raises: ValueError for a learner that normalises states without such data.
  """
  if learner.normalised and offline_start is None:
    raise ValueError(
      'Offline.normalised = True needs the states of offline data: give '
      'train(offline_start=...), or set normalised = False'
    )
  data = _empty(world_at(jnp.float32(0.0)), episodes * horizon)
  before, begun = 0, None
  if offline_start is not None:
    before = offline_start[1].size
    begun, old = offline_start
    data = jax.tree.map(
      lambda old, new: jnp.concatenate([old, new]),
      learner.prepared(begun.params, old),
      data,
    )

  def one(carry: Any, number: Array) -> tuple[Any, Array]:
    state, data = carry
    now = jax.random.fold_in(key, number)
    actor = Noisy(learner=learner, params=state.params, noise=noise)
    world = world_at(number / episodes)
    steps = unroll(world, actor, now, 1, horizon)
    rows = offline.transitions(jax.tree.map(lambda x: x[None], steps))
    rows = learner.prepared(state.params, rows)

    def put(old: Array, new: Array) -> Array:
      start = before + number * horizon, *(0,) * (old.ndim - 1)
      return jax.lax.dynamic_update_slice(old, new, start)

    data = jax.tree.map(put, data, rows)
    filled = before + (number + 1) * horizon

    def update(state: State, step: Array) -> tuple[State, None]:
      draw = jax.random.fold_in(jax.random.fold_in(now, 1), step)
      return learner.update(state, data, (), draw, filled)[0], None

    state, _ = jax.lax.scan(update, state, jnp.arange(horizon))
    return (state, data), steps.reward.sum()

  if begun is None:
    begun = learner.init(data, jax.random.fold_in(key, episodes))
  (state, _), return_E = jax.lax.scan(one, (begun, data), jnp.arange(episodes))
  return state, return_E
