"""Histories: an actor plays episodes of one task, as one scan."""

import functools
from typing import Any, NamedTuple

from flax import struct
import jax
import jax.numpy as jnp

from rl_jax.control.base import Actor, Step, World
from rl_jax.control.checks import acted, check, same_form, stepped
from rl_jax.types import Array

# What keys are for; each is folded into the key of the step.
_ACT, _STEP, _BEGIN = range(3)


class Steps(struct.PyTreeNode, kw_only=True):
  """The steps of a history, [T, ...], or of several, [B, T, ...].

  An episode ends where the world says done, or at the horizon (`last`); the
  next step is then the first of the next episode, so that all histories are
  equally long. valid: 0 from the first step on that has a number that is not
  finite. optimal, regret: see World. episode: from 0.
  """

  obs: Array
  action: Array
  reward: Array
  next_obs: Array | None
  done: Array  # bool
  last: Array  # bool
  episode: Array  # int32
  optimal: Array
  regret: Array
  valid: Array  # float32


class _Playing(NamedTuple):
  state: Any
  memory: Any
  age: Array  # steps of the episode so far
  episode: Array
  valid: Array


def _finite(*arrays: Array) -> Array:
  """True if all floating numbers are finite."""
  floats = [x for x in arrays if jnp.issubdtype(x.dtype, jnp.floating)]
  return jnp.all(jnp.array([jnp.isfinite(x).all() for x in floats]))


def _started(
  world: World, actor: Actor, task_key: Array, memory_key: Array
) -> _Playing:
  """The first episode of a new task, before its first step."""
  state = world.reset(task_key)
  begun = world.begin(state, jax.random.fold_in(task_key, _BEGIN))
  same_form(f'{type(world).__name__}.begin', 'state', begun, state)
  return _Playing(
    state=begun,
    memory=actor.init(memory_key),
    age=jnp.int32(0),
    episode=jnp.int32(0),
    valid=jnp.float32(1.0),
  )


def unroll(
  world: World, actor: Actor, key: Array, episodes: int, horizon: int
) -> Steps:
  """episodes * horizon steps of one task, [T, ...].

  The world draws a task, and the actor keeps its memory through all episodes.
  There are more episodes than that number where some end early. Of several
  tasks: `jax.vmap` over keys. To be traced; `histories` checks more.

  Raises: ValueError that names a state, memory or action of another form than
    before.
  """
  where, who = type(world).__name__, type(actor).__name__
  actor.check(episodes * horizon)
  task_key, memory_key, steps_key = jax.random.split(key, 3)
  start = _started(world, actor, task_key, memory_key)

  def one(playing: _Playing, number: Array) -> tuple[_Playing, Steps]:
    now = jax.random.fold_in(steps_key, number)
    keys = [jax.random.fold_in(now, purpose) for purpose in range(3)]
    state = playing.state
    obs = world.observe(state)
    made = actor.act(playing.memory, obs, keys[_ACT])
    action, memory = acted(world, actor, playing.memory, made)
    made = world.step(state, action, keys[_STEP])
    after, reward, done = stepped(world, state, made)
    reward, done = jnp.asarray(reward, jnp.float32), jnp.asarray(done, bool)
    next_obs = world.observe(after)
    last = done | (playing.age + 1 >= horizon)
    step = Step(obs, action, reward, next_obs, done, last)
    learnt = actor.learn(memory, step)
    same_form(f'{who}.learn', 'memory', learnt, memory)
    fresh = world.begin(after, keys[_BEGIN])
    same_form(f'{where}.begin', 'state', fresh, after)
    begun = jax.tree.map(lambda a, b: jnp.where(last, a, b), fresh, after)
    valid = playing.valid * _finite(obs, action, reward, next_obs)
    steps = Steps(
      **step._asdict(),
      episode=playing.episode,
      optimal=world.optimal(state),
      regret=jnp.float32(world.regret(state, action)),
      valid=valid,
    )
    playing = _Playing(
      state=begun,
      memory=learnt,
      age=jnp.where(last, 0, playing.age + 1),
      episode=playing.episode + last,
      valid=valid,
    )
    return playing, steps

  _, steps = jax.lax.scan(one, start, jnp.arange(episodes * horizon))
  return steps


@functools.partial(jax.jit, static_argnames=('episodes', 'horizon'))
def _unroll_rows(world, actor, key_B, episodes, horizon):
  return jax.vmap(lambda key: unroll(world, actor, key, episodes, horizon))(
    key_B
  )


def histories(
  world: World, actor: Actor, key_B: Array, episodes: int, horizon: int
) -> Steps:
  """`unroll` of every key, [B, T, ...], after `checks.check`.

  Raises: ValueError that names what the world or the actor does wrong.
  """
  check(world, actor, episodes, horizon)
  return _unroll_rows(world, actor, key_B, episodes, horizon)


def episode_returns(steps: Steps, episodes: int) -> Array:
  """Sums of rewards of the first episodes of histories, [..., episodes]."""
  episode_TE = jax.nn.one_hot(steps.episode, episodes)
  reward_T = jnp.where(steps.valid > 0, steps.reward, 0.0)
  return jnp.einsum('...t,...te->...e', reward_T, episode_TE)
