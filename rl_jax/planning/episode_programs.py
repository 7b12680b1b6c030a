"""The programs of episodes, lowered on shapes only, and the rows they leave."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.config import ExperimentConfig
from rl_jax.decoding import slot_decode
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
  """The programs by a word that names them; '': that of the first tokens.

  sample         a call of as many rows as there are slots; with their number
                 where it is less
  feed           a call of the few rows that are fed at a time, likewise
  kept           a copy of the keys of a row of each shard, to move to the host
  returned       such keys get a place again; both only if rows move

  The mesh of the engine is in force.
  """
  most = traj.response_BT.shape[1]
  if not config.task.traits.rewrites:
    # Wrappers of chat templates come on top: a few tokens.
    most = config.rollout.turn_limits.max_observation_tokens
  programs: Any = engine.slots  # jitted functions, which can be lowered
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
  moves = bool(config.rollout.host_cache_tokens)
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
