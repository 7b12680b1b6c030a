"""Faults of worlds and actors, found before anything is compiled."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.control.base import Actor, Box, Discrete, Space, Step, World
from rl_jax.types import Array

_SHAPES = (jax.errors.JAXTypeError, jax.errors.JAXIndexError)


def check(world: World, actor: Actor, episodes: int, horizon: int) -> None:
  """Raises ValueError that names what is wrong, before any program is compiled.

  The world plays two steps; the actor is only traced. Found are shapes that
  depend on the state, numbers that are not finite, functions that are not pure,
  a memory that is not returned, actions outside their space, and episodes
  without an end. Numbers that become infinite later make the rest of their
  history invalid (`Steps.valid`).
  """
  for name, value in (('episodes', episodes), ('horizon', horizon)):
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
      raise ValueError(
        f'unroll.{name} = {value!r}: expected a positive integer; an episode '
        'that the world does not end is cut at the horizon'
      )
  for part in (world, actor):
    if any(leaf is part for leaf in jax.tree.leaves(part)):
      raise ValueError(
        f'{type(part).__name__} is not a pytree: write @declared above the '
        'class'
      )
  world.check()
  actor.check(episodes * horizon)
  _check_actor(world, actor, _check_world(world))


def _check_world(world: World) -> tuple[Array, Array, Array]:
  """Plays two steps; returns (observation, reward, done)."""
  where = type(world).__name__
  _space(f'{where}.observations', world.observations)
  _space(f'{where}.actions', world.actions)
  keys = jax.random.split(jax.random.key(0), 4)
  state = _called(f'{where}.reset', world.reset, keys[0])
  begun = _called(f'{where}.begin', world.begin, state, keys[1])
  same_form(f'{where}.begin', 'state', begun, state)
  state, action = begun, world.actions.example()
  obs = reward = done = jnp.float32(0.0)
  for key in keys[2:]:
    obs = _called(f'{where}.observe', world.observe, state)
    _in_space(f'{where}.observe', obs, world.observations)
    result = _called(f'{where}.step', world.step, state, action, key)
    after, reward, done = stepped(world, state, result)
    _scalar(f'{where}.step', 'reward', reward, jnp.floating)
    _scalar(f'{where}.step', 'done', done, jnp.bool_)
    state = after
  best = _called(f'{where}.optimal', world.optimal, state, finite=False)
  _of_form(f'{where}.optimal', best, world.actions)
  regret = _called(f'{where}.regret', world.regret, state, action)
  if regret.shape:
    raise ValueError(
      f'{where}.regret gave an array of shape {regret.shape}, expected a scalar'
    )
  return obs, reward, done


def _check_actor(
  world: World, actor: Actor, seen: tuple[Array, Array, Array]
) -> None:
  """Traces one step."""
  who, key = type(actor).__name__, jax.random.key(0)
  obs, reward, done = seen
  memory = _traced(f'{who}.init', actor.init, key)
  result = _traced(f'{who}.act', actor.act, memory, obs, key)
  action, after = acted(world, actor, memory, result)
  step = Step(obs, action, reward, obs, done, done)
  memory = _traced(f'{who}.learn', actor.learn, after, step)
  same_form(f'{who}.learn', 'memory', memory, after)


def stepped(world: World, state: Any, result: Any) -> tuple[Any, Array, Array]:
  """(next state, reward, done) of what World.step gave; forms are checked.

  Raises: ValueError that names what has another form than it had before.
  """
  where = f'{type(world).__name__}.step'
  if not isinstance(result, tuple) or len(result) != 3:
    raise ValueError(
      f'{where}: expected (state, reward, done), got {result!r:.80}'
    )
  after, reward, done = result
  same_form(where, 'state', after, state)
  for name, x in (('reward', reward), ('done', done)):
    if jnp.shape(x):
      raise ValueError(
        f'{where}: {name} has shape {jnp.shape(x)}, expected a scalar'
      )
  return after, reward, done


def acted(
  world: World, actor: Actor, memory: Any, result: Any
) -> tuple[Array, Any]:
  """(action, next memory) of what Actor.act gave; forms are checked.

  Raises: as stepped.
  """
  who = f'{type(actor).__name__}.act'
  if not isinstance(result, tuple) or len(result) != 2:
    raise ValueError(f'{who}: expected (action, memory), got {result!r:.80}')
  action, after = result
  same_form(who, 'memory', after, memory)
  _of_form(who, action, world.actions)
  return action, after


def _space(name: str, space: Any) -> None:
  """Raises ValueError for anything but a space."""
  if not isinstance(space, Discrete | Box):
    raise ValueError(
      f'{name} = {space!r:.60}: expected Discrete(n) or Box(size)'
    )


def _called(
  name: str, function: Any, *arguments: Any, finite: bool = True
) -> Any:
  """The result of a pure function, whose numbers are finite."""
  _traced(name, function, *arguments)
  result = jax.tree.map(jnp.asarray, function(*arguments))
  for path, x in jax.tree_util.tree_flatten_with_path(result)[0]:
    if finite and jnp.issubdtype(x.dtype, jnp.floating):
      if not np.isfinite(x).all():
        field = f'{name}: result{jax.tree_util.keystr(path)}'
        raise ValueError(f'{field} = {np.asarray(x)!r:.60} is not finite')
  return result


def _traced(name: str, function: Any, *arguments: Any) -> Any:
  """The abstract result of a function whose two traces are equal."""
  shapes = []

  def trace():
    def shaped(*arguments: Any):  # a new one: traces of a function are cached
      result = jax.tree.map(jnp.asarray, function(*arguments))
      shapes.append(jax.tree.map(jax.typeof, result))
      return result

    return jax.make_jaxpr(shaped)(*arguments)

  try:
    first, second = trace(), trace()
  except (TypeError, jax.errors.JAXIndexError) as error:
    # Most errors of JAX are TypeErrors, too.
    if not isinstance(error, _SHAPES) and 'concrete' not in str(error):
      raise
    line = str(error).strip().splitlines()[0]
    raise ValueError(
      f'{name} reads values of the state where it needs shapes: {line}; use '
      'jnp.where, and arrays of one shape with a mask'
    ) from error
  equal = str(first.jaxpr) == str(second.jaxpr) and all(
    _equal(a, b) for a, b in zip(first.consts, second.consts, strict=False)
  )
  if not equal:
    raise ValueError(
      f'{name} is not pure: two calls with equal arguments differ; draw random '
      'numbers from the key, and keep numbers in the state or memory'
    )
  return shapes[0]


def _equal(a: Array, b: Array) -> bool:
  """True for equal arrays, which may be keys."""
  if jax.dtypes.issubdtype(a.dtype, jax.dtypes.prng_key):
    a, b = jax.random.key_data(a), jax.random.key_data(b)
  return np.array_equal(a, b)


def _array(x: Any) -> Any:
  """Numbers of Python and numpy as arrays; what is traced is as it was."""
  host = isinstance(x, bool | int | float | np.ndarray | np.generic)
  return jnp.asarray(x) if host else x


def same_form(name: str, what: str, new: Any, old: Any) -> None:
  """Raises ValueError unless shapes and types are as before."""
  new, old = jax.tree.map(_array, (new, old))
  if jax.tree.structure(new) != jax.tree.structure(old):
    raise ValueError(
      f'{name}: the {what} became {jax.tree.structure(new)}, and was '
      f'{jax.tree.structure(old)}: return the next {what} every time'
    )
  leaves = jax.tree_util.tree_flatten_with_path(new)[0]
  for (path, a), b in zip(leaves, jax.tree.leaves(old), strict=True):
    if (a.shape, a.dtype) != (b.shape, b.dtype):
      raise ValueError(
        f'{name}: {what}{jax.tree_util.keystr(path)} became {a.dtype}'
        f'{list(a.shape)}, and was {b.dtype}{list(b.shape)}: shapes may not '
        'depend on the state'
      )


def _scalar(name: str, what: str, x: Array, kind: Any) -> None:
  if x.shape or not jnp.issubdtype(x.dtype, kind):
    raise ValueError(
      f'{name}: {what} is {x.dtype}{list(x.shape)}, expected a scalar '
      f'{"bool" if kind is jnp.bool_ else "float32"}'
    )


def _of_form(name: str, x: Array, space: Space) -> None:
  """Raises ValueError for a value of another shape or type than the space."""
  x = _array(x)
  shape, kind = (), jnp.integer
  if not isinstance(space, Discrete):
    shape, kind = (space.size,), jnp.floating
  if x.shape != shape or not jnp.issubdtype(x.dtype, kind):
    raise ValueError(
      f'{name} gave {x.dtype}{list(x.shape)}, which is not of {space}'
    )


def _in_space(name: str, x: Array, space: Space) -> None:
  """Raises ValueError for a value outside its space."""
  _of_form(name, x, space)
  if isinstance(space, Discrete) and not 0 <= int(x) < space.n:
    raise ValueError(f'{name} gave {int(x)}, which is not of {space}')
