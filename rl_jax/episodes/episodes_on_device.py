"""Episodes whose environments answer on the device, as one function.

The host is not asked between turns, so that whole runs can be one program. The
record is that of `slot_runner.SlotRunner` (tier E2).
"""

import dataclasses
import functools
from typing import Any

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp

from rl_jax import models
from rl_jax.decoding import turn_decode
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.episodes.turns import TurnConfig
from rl_jax.types import Array, Trajectories, Turns


class _Played(struct.PyTreeNode, kw_only=True):
  """Episodes after a turn has been drawn, which nothing has answered yet.

  turn: its number. live: rows that have had it. begun: tokens before its
  observation; given: with it. rewards: components [B, K] of the turns before.
  """

  turn: Array
  playing: turn_decode.Playing
  environment: Any
  facing_B: Array  # the state that the policy has faced
  live_B: Array
  begun_B: Array
  given_B: Array
  done_B: Array
  turn_BT: Array
  state_BK: Array
  action_BK: Array
  calls_BK: Array
  duration_BK: Array
  rewards: dict[str, Array]


@dataclasses.dataclass(frozen=True)
class Game:
  """A task with begin_device and step_device, and the limits of its turns."""

  task: Any
  tokenizer: Any
  turns: TurnConfig


def play(
  params: Any,
  traj: Trajectories,
  key: Array,
  *,
  cfg: models.ModelConfig,
  sampling: SamplingConfig,
  game: Game,
  answer_NA: Array,
) -> tuple[Trajectories, dict[str, Array]]:
  """(whole episodes, reward components [B]); see `SlotRunner.play`.

  answer: of the task's device_answers.

  Raises: ValueError if an observation may be longer than the limits allow.
  """
  fixed = {
    'cfg': cfg,
    'sampling': sampling,
    'turn_tokens': game.turns.max_turn_tokens,
  }
  weights, playing = turn_decode.begin(params, traj, key, **fixed)
  step = functools.partial(_answered, game)
  first = _first(game, step, traj, playing, answer_NA)

  def one_turn(played):
    played, said = step(played)
    playing = turn_decode.turn(weights, played.playing, said, **fixed)
    return played.replace(playing=playing)

  played = lax.while_loop(lambda p: p.live_B.any(), one_turn, first)
  rewards = {name: x.sum(axis=1) for name, x in played.rewards.items()}
  return _record(game.task, traj, played), rewards


def _first(game, step, traj, playing, answer_NA) -> _Played:
  """After the first turn."""
  B, K = traj.length_B.shape[0], game.turns.max_turns
  environment, state_B = game.task.begin_device(
    jnp.repeat(answer_NA, traj.group_size, axis=0)
  )
  none_B, none_BK = jnp.zeros(B, jnp.int32), jnp.full((B, K), -1, jnp.int32)
  first = _Played(
    turn=jnp.int32(0),
    playing=playing,
    environment=environment,
    facing_B=state_B,
    live_B=jnp.ones(B, bool),
    begun_B=none_B,
    given_B=none_B,
    done_B=jnp.zeros(B, bool),
    turn_BT=jnp.full(traj.response_BT.shape, -1, jnp.int32),
    state_BK=none_BK,
    action_BK=none_BK,
    calls_BK=jnp.zeros((B, K), jnp.int32),
    duration_BK=jnp.zeros((B, K)),
    rewards={},
  )
  names = jax.eval_shape(step, first)[0].rewards
  zeros = {name: jnp.zeros((B, K)) for name in names}
  return first.replace(rewards=zeros)


def _answered(
  game: Game, played: _Played
) -> tuple[_Played, turn_decode.Observations]:
  """Returns what environments say to the turn, and what rows read before the
  next.
  """
  task, turns = game.task, game.turns
  rows, live_B = played.playing.rows, played.live_B
  T, K = rows.response_BT.shape[1], turns.max_turns
  place_BA = played.given_B[:, None] + jnp.arange(turns.max_turn_tokens)[None]
  environment, reply = task.step_device(
    played.environment,
    rows.response_BT.at[jnp.arange(len(live_B))[:, None], place_BA].get(
      mode='clip'
    ),
    rows.length_B - played.given_B,
    game.tokenizer,
  )
  _check_observations(game, reply.ids_BO.shape[1])

  def note(x_BK, x_B):
    return x_BK.at[:, played.turn].set(
      jnp.where(live_B, x_B, x_BK[:, played.turn])
    )

  rewards = {
    name: note(played.rewards.get(name, jnp.zeros((len(live_B), K))), x_B)
    for name, x_B in reply.rewards.items()
  }
  place_1T, length_B = jnp.arange(T)[None], rows.length_B
  new_BT = (place_1T >= played.begun_B[:, None]) & live_B[:, None]
  new_BT &= place_1T < length_B[:, None]
  # An observation that leaves no room for a turn is not put there.
  going_B = live_B & ~reply.done_B & (played.turn + 1 < K)
  going_B &= length_B + reply.length_B < T
  return played.replace(
    turn=played.turn + 1,
    environment=environment,
    facing_B=reply.state_B,
    live_B=going_B,
    begun_B=length_B,
    given_B=length_B + reply.length_B,
    done_B=played.done_B | (live_B & reply.done_B),
    turn_BT=jnp.where(new_BT, played.turn, played.turn_BT),
    state_BK=note(played.state_BK, played.facing_B),
    action_BK=note(played.action_BK, reply.action_B),
    calls_BK=note(
      played.calls_BK, 0 if reply.calls_B is None else reply.calls_B
    ),
    duration_BK=note(
      played.duration_BK, 1.0 if reply.duration_B is None else reply.duration_B
    ),
    rewards=rewards,
  ), turn_decode.Observations(
    ids_BO=reply.ids_BO, length_B=reply.length_B, live_B=going_B
  )


def _check_observations(game: Game, most: int) -> None:
  """Raises ValueError if observations of so many tokens do not fit."""
  limit = game.turns.max_observation_tokens
  if most > limit:
    raise ValueError(
      f'rollout.turns.max_observation_tokens = {limit}, but '
      f'{type(game.task).__name__} says up to {most} tokens, which are not cut '
      'on the device'
    )


def _record(task: Any, traj: Trajectories, played: _Played) -> Trajectories:
  """The record of episodes that are over."""
  weights = task.reward_weights
  turn_1K = jnp.arange(played.state_BK.shape[1])[None]
  numbers_BK = functools.partial(_numbered, traj.group_size)
  of_states = numbers_BK(played.state_BK)
  of_actions = numbers_BK(played.action_BK)
  after_states = traj.group_size * turn_1K.size  # one numbering for both
  reward_BK = jnp.zeros_like(played.duration_BK)
  for name, weight in weights.items():
    reward_BK += weight * played.rewards[name]
  turns = Turns(
    reward_BK=reward_BK,
    state_BK=of_states,
    action_BK=jnp.where(of_actions < 0, -1, of_actions + after_states),
    calls_BK=played.calls_BK,
    duration_BK=played.duration_BK,
  )
  return turn_decode.finish(
    traj, played.playing, played.done_B, played.turn_BT, turns
  )


def _numbered(group_size: int, key_BK: Array) -> Array:
  """Replaces each key by the place of its first occurrence; -1 stays."""
  key_NS = key_BK.reshape(-1, group_size * key_BK.shape[1])

  def first(key_S):
    return (key_S[:, None] == key_S[None]).argmax(axis=1)

  number_NS = lax.map(first, key_NS).astype(jnp.int32)
  return jnp.where(key_NS < 0, -1, number_NS).reshape(key_BK.shape)
