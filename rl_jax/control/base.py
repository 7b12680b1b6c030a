"""Worlds and actors as pure functions, and the spaces between them.

A world holds no state: `reset` draws a hidden task, so that `jax.vmap` over
keys is a distribution of tasks. An actor holds no memory: it returns the next
one. Both are frozen dataclasses whose float fields are leaves of a pytree, so
that a whole run is one program, and `jax.vmap` over fields compares settings.
"""

import dataclasses
from typing import Any, NamedTuple, TypeVar, dataclass_transform

from flax import struct
import jax
import jax.numpy as jnp

from rl_jax.checks import checked, ranged
from rl_jax.types import Array

_Class = TypeVar('_Class')


@dataclasses.dataclass(frozen=True)
@checked
class Discrete:
  """The integers 0 to n - 1."""

  n: int = ranged(low=1)

  @property
  def width(self) -> int:
    """Numbers in the features of a value."""
    return self.n

  def features(self, x: Array) -> Array:
    """One-hot, [..., n]."""
    return jax.nn.one_hot(x, self.n)

  def example(self) -> Array:
    """A value of the space."""
    return jnp.int32(0)

  def unknown(self) -> Array:
    """The value that stands for no value."""
    return jnp.int32(-1)


@dataclasses.dataclass(frozen=True)
@checked
class Box:
  """Vectors of `size` real numbers; those of actions lie within [-1, 1]."""

  size: int = ranged(low=1)

  @property
  def width(self) -> int:
    """Numbers in the features of a value."""
    return self.size

  def features(self, x: Array) -> Array:
    """The vector itself, [..., size]."""
    return x

  def example(self) -> Array:
    """A value of the space."""
    return jnp.zeros(self.size)

  def unknown(self) -> Array:
    """The value that stands for no value."""
    return jnp.full(self.size, jnp.nan)


Space = Discrete | Box


class Step(NamedTuple):
  """One action and what followed, from which an actor learns.

  done: the world has ended the episode, so that nothing follows next_obs.
  last: it ended, or was cut at the horizon; the next step is of a new episode.
  """

  obs: Array
  action: Array
  reward: Array  # float32, in units of the world
  next_obs: Array
  done: Array  # bool
  last: Array  # bool


def _missing(part: object, name: str) -> NotImplementedError:
  """The error of what a subclass has to define."""
  return NotImplementedError(f'{type(part).__name__}.{name} is missing')


class World:
  """A distribution of tasks; its subclasses are declared with `declared`.

  A state is any pytree of arrays whose shapes never change.
  """

  @property
  def observations(self) -> Space:
    """The space of `observe`."""
    raise _missing(self, 'observations')

  @property
  def actions(self) -> Space:
    """The space of actions and of `optimal`."""
    raise _missing(self, 'actions')

  def check(self) -> None:
    """Raises ValueError for fields that do not fit; not to be traced."""

  def reset(self, key: Array) -> Any:
    """The state of a new task, whose hidden part is drawn from the key."""
    raise _missing(self, 'reset')

  def begin(self, state: Any, key: Array) -> Any:
    """The state at the start of the next episode of the same task."""
    del key
    return state

  def observe(self, state: Any) -> Array:
    """Returns what an actor sees."""
    raise _missing(self, 'observe')

  def step(
    self, state: Any, action: Array, key: Array
  ) -> tuple[Any, Array, Array]:
    """(next state, reward, done); the state of an ended episode is its last."""
    raise _missing(self, 'step')

  def optimal(self, state: Any) -> Array:
    """An action that is best in this state, for an actor that knows the task.

    By default it is unknown: -1, or NaN.
    """
    del state
    return self.actions.unknown()

  def regret(self, state: Any, action: Array) -> Array:
    """Expected reward of the best action less that of this one; 0: unknown."""
    del state, action
    return jnp.float32(0.0)

  def render(self, state: Any) -> Array:
    """Pixels [H, W] in [0, 1], for what reads images."""
    raise NotImplementedError(f'{type(self).__name__} has no image')


class Actor:
  """Anything that acts; its subclasses are declared with `declared`.

  A memory is any pytree of arrays whose shapes never change.
  """

  def check(self, steps: int) -> None:
    """Raises ValueError if it cannot act for so many steps of a task."""

  def init(self, key: Array) -> Any:
    """The memory at the start of a task."""
    del key
    return ()

  def act(self, memory: Any, obs: Array, key: Array) -> tuple[Array, Any]:
    """(action, memory)."""
    raise _missing(self, 'act')

  def learn(self, memory: Any, step: Step) -> Any:
    """The memory after a step; by default nothing is learnt."""
    del step
    return memory


@dataclass_transform(frozen_default=True, kw_only_default=True)
def declared(cls: type[_Class]) -> type[_Class]:
  """Class decorator: a frozen dataclass and pytree with checked fields.

  Fields of `checks.ranged` are leaves unless they say `static=True`.
  """
  return struct.dataclass(checked(cls), kw_only=True)
