"""Worlds on other worlds: what is observed, kept or allowed is different."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.control.actors import UCB, Pulls
from rl_jax.control.base import Box, Space, Step, World, declared
from rl_jax.control.worlds import DarkRoom, RoomState
from rl_jax.types import Array, static


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

  def check(self) -> None:
    """The same as of the world."""
    self.world.check()

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


class GuidedState(NamedTuple):
  """The state of a room, and the list of sub-goals."""

  inner: RoomState
  goals_N2: Array  # cells
  index: Array  # of the current one
  age: Array  # steps since it is current
  time: Array  # steps of the episode


@declared
class Guided(Wrapped):
  """A DarkRoom with a key, and sub-goals that a teacher has listed.

    r = success (1 - .9 t / T) + alpha (1 - n / T) where a sub-goal is met

  The sub-goals are the key and the goal; n counts steps since the current one
  became current, t those of the episode, T is the horizon. The last sub-goal
  pays no bonus, as the world pays. With probability 1 - accuracy a sub-goal is
  a random cell instead. The offset to the current one is observed beside the
  cell; without a teacher (`teaches` is false) it is 0, and nothing is paid.
  Source: "Words as Beacons", gym_minigrid/envs/subgoal_generator.py; a language
  model wrote the list there.
  """

  world: DarkRoom
  horizon: int = ranged(30, 1, static=True)
  alpha: float = ranged(0.2, 0.0)
  accuracy: float = ranged(1.0, 0.0, 1.0)
  teaches: bool = static(default=True)

  def __post_init__(self):
    if isinstance(self.world, DarkRoom) and not self.world.key_door:
      raise ValueError('Guided.world: expected DarkRoom(key_door=True)')

  @property
  def observations(self) -> Space:
    """The cell, one-hot, and the offset in units of the room."""
    return Box(self.world.observations.width + 2)

  def bonus(self, age: Array) -> Array:
    """Pay for a sub-goal that was met after so many steps."""
    return self.alpha * (1 - age / self.horizon)

  def reset(self, key: Array) -> GuidedState:
    """A room, and the list of the teacher."""
    room_key, wrong_key, cell_key = jax.random.split(key, 3)
    inner = self.world.reset(room_key)
    right_N2 = jnp.stack([inner.key_2, inner.goal_2])
    wrong_N = jax.random.uniform(wrong_key, (2,)) >= self.accuracy
    cell_N2 = jax.random.randint(cell_key, (2, 2), 0, self.world.size)
    goals_N2 = jnp.where(wrong_N[:, None], cell_N2, right_N2)
    zero = jnp.int32(0)
    return GuidedState(inner, goals_N2, zero, zero, zero)

  def begin(self, state: GuidedState, key: Array) -> GuidedState:
    """From the first sub-goal on."""
    zero = jnp.int32(0)
    inner = self.world.begin(state.inner, key)
    return state._replace(inner=inner, index=zero, age=zero, time=zero)

  def observe(self, state: GuidedState) -> Array:
    """Cell and offset."""
    seen = self.world.observations.features(self.world.observe(state.inner))
    offset_2 = state.goals_N2[state.index] - state.inner.cell_2
    offset_2 = self.teaches * offset_2 / self.world.size
    return jnp.concatenate([seen, offset_2])

  def step(
    self, state: GuidedState, action: Array, key: Array
  ) -> tuple[GuidedState, Array, Array]:
    """Sub-goals are met in their order only."""
    inner, _, done = self.world.step(state.inner, action, key)
    age, time = state.age + 1, state.time + 1
    met = (inner.cell_2 == state.goals_N2[state.index]).all()
    met &= state.index + 1 < len(state.goals_N2)
    reward = done * (1 - 0.9 * time / self.horizon)
    reward += met * self.bonus(age) * self.teaches
    after = GuidedState(
      inner,
      state.goals_N2,
      state.index + met,
      jnp.where(met, 0, age),
      time,
    )
    return after, reward, done

  def optimal(self, state: GuidedState) -> Array:
    """The same as of the world."""
    return self.world.optimal(state.inner)


class BoundedState(NamedTuple):
  """The state of a world, and whether the bounds act on the next action."""

  inner: Any
  on: Array


@declared
class Bounded(Wrapped):
  """Actions x are squeezed into an interval that a program proposes (CAMEL).

    a = l + (x + 1) / 2 (u - l) with probability `share`, else l = -1, u = 1

  program: observation -> (l, u), within [-1, 1]. The bounds are observed, so
  that critics of (observation, x) are critics of executed actions. `share`
  falls from 1 to 0 during training.
  Source: CAMEL, from its abstract and the authors' summary.
  """

  program: Any = static()
  share: float = ranged(1.0, 0.0, 1.0)

  @property
  def observations(self) -> Space:
    """The observation, l and u."""
    size = self.world.observations.width + 2 * self.world.actions.width
    return Box(size)

  def _drawn(self, inner: Any, key: Array) -> BoundedState:
    return BoundedState(inner, jax.random.uniform(key) < self.share)

  def reset(self, key: Array) -> BoundedState:
    """Draws whether the bounds act."""
    world_key, on_key = jax.random.split(key)
    return self._drawn(self.world.reset(world_key), on_key)

  def begin(self, state: BoundedState, key: Array) -> BoundedState:
    """Draws again."""
    world_key, on_key = jax.random.split(key)
    return self._drawn(self.world.begin(state.inner, world_key), on_key)

  def bounds(self, state: BoundedState) -> tuple[Array, Array]:
    """(l, u) of the next action."""
    low, high = self.program(self.world.observe(state.inner))
    ones = jnp.ones(self.world.actions.width)
    return jnp.where(state.on, low, -ones), jnp.where(state.on, high, ones)

  def observe(self, state: BoundedState) -> Array:
    """Observation and bounds."""
    seen = self.world.observations.features(self.world.observe(state.inner))
    return jnp.concatenate([seen, *self.bounds(state)])

  def step(
    self, state: BoundedState, action: Array, key: Array
  ) -> tuple[BoundedState, Array, Array]:
    """The world sees the squeezed action."""
    world_key, on_key = jax.random.split(key)
    inside = squeezed(action, *self.bounds(state))
    inner, reward, done = self.world.step(state.inner, inside, world_key)
    return self._drawn(inner, on_key), reward, done

  def render(self, state: BoundedState) -> Array:
    """The same as of the world."""
    return self.world.render(state.inner)

  def optimal(self, state: BoundedState) -> Array:
    """Unknown: the best x depends on the bounds."""
    return self.actions.unknown()

  def regret(self, state: BoundedState, action: Array) -> Array:
    """Unknown."""
    return jnp.float32(0.0)


def squeezed(x: Array, low: Array, high: Array) -> Array:
  """From [-1, 1] to [low, high]."""
  return low + (x + 1) / 2 * (high - low)


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
