"""The programs of episodes, lowered on shapes only, and the rows they leave."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.config import ExperimentConfig
from rl_jax.decoding import slot_decode, turn_decode
from rl_jax.decoding.engine import Engine
from rl_jax.runtime import layout
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.types import Trajectories, Turns


def lowered(
  engine: Engine,
  params: Any,
  traj: Trajectories,
  key: Any,
  config: ExperimentConfig,
) -> dict[str, jax.stages.Lowered]:
  """The programs by a word that names them; '': that of the first turn.

  turn           a later turn of all rows
  sample         a call of as many rows as there are slots, where rows do not
                 wait for each other; with the number of slots where it is less
  feed           a call of the few rows that are fed at a time there
  kept           a copy of the keys of a row of each shard, to move to the host
  returned       such keys get a place again; both only if rows move

  The mesh of the engine is in force.
  """
  most = traj.response_BT.shape[1]
  if not config.task.traits.rewrites:
    # Wrappers of chat templates come on top: a few tokens.
    most = config.rollout.turn_limits.max_observation_tokens
  array: Any = functools.partial(
    jax.ShapeDtypeStruct, sharding=mesh_lib.replicated(engine.mesh)
  )
  if engine.slots is not None:
    moves = bool(config.rollout.host_cache_tokens)
    return _of_slots(engine.slots, (params, traj, key), most, moves)
  begin = engine.begin.lower(params, traj=traj, key=key)
  weights, playing, _ = begin.out_info
  rows = traj.response_BT.shape[0]
  said = turn_decode.Observations(
    ids_BO=array((rows, most), jnp.int32),
    length_B=array((rows,), jnp.int32),
    live_B=array((rows,), bool),
    forget_B=array((rows,), bool),
  )
  return {'': begin, 'turn': engine.turn.lower(weights, playing, said)}


def _of_slots(
  programs: Any, begun: tuple, most: int, moves: bool
) -> dict[str, jax.stages.Lowered]:
  """The programs of slots, one for each number of slots that a run tries.

  moves: whether rows without a place in the cache may move to the host.
  """
  params, traj, key = begun
  begin = programs.begin.lower(params, traj=traj, key=key)
  weights, table, _ = begin.out_info
  shards = layout.parts(traj.num_prompts, 'sampled_rows')
  by_rows = mesh_lib.sampled_rows(programs.mesh, traj.num_prompts)
  array: Any = functools.partial(jax.ShapeDtypeStruct, sharding=by_rows)

  of_feed, of_sample = slot_decode.columns(most)
  found = {'': begin}
  widths, feeds = programs.tried(traj)
  for width in reversed(feeds):
    slots = width * shards
    name = 'feed' if width == feeds[-1] else f'feed {slots}'
    said = array((slots, of_feed), jnp.int32)
    found[name] = programs.feed.lower(weights, table, said)
  for width in widths:
    slots = width * shards
    name = 'sample' if width == widths[0] else f'sample {slots}'
    chosen = array((slots, of_sample), jnp.int32)
    found[name] = programs.sample.lower(weights, table, chosen)
  if moves and programs.places(traj) * shards < traj.response_BT.shape[0]:
    place = array((shards,), jnp.int32)
    found['kept'] = programs.kept.lower(table, place)
    keys = found['kept'].out_info
    found['returned'] = programs.returned.lower(table, place, keys)
  return found


def played(traj: Trajectories, config: ExperimentConfig) -> Trajectories:
  """The record of episodes."""
  shape = (traj.response_BT.shape[0], config.rollout.turn_limits.max_turns)
  number: Any = jax.ShapeDtypeStruct(shape, jnp.int32)
  reward: Any = jax.ShapeDtypeStruct(shape, jnp.float32)
  return traj.replace(
    turn_BT=traj.kind_BT,
    context_BT=traj.kind_BT if config.task.traits.rewrites else None,
    turns=Turns(
      reward_BK=reward,
      state_BK=number,
      action_BK=number,
      calls_BK=number,
      duration_BK=reward,
    ),
    extras={'first_call_B': traj.length_B},
  )
