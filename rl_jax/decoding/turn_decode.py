"""Turns of episodes on the device, with caches that are kept between them.

A prompt is encoded once for its group, and every token of an episode is fed
once: those of an observation several at a time, and the last few by the same
steps that draw tokens. Each row samples as soon as its own observation has been
fed. Turns of all rows at once (`begin`, `turn`) are those of environments that
answer on the device; others have slots (slot_decode).
"""

import functools
from typing import Any, Protocol

from flax import struct
from jax import lax
import jax.numpy as jnp

from rl_jax import models
from rl_jax.decoding import decode, slots
from rl_jax.decoding.generate import (
  prepare_weights,
  stop_states,
  unfinished_rows,
)
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.decoding.slots import Rows
from rl_jax.models import rope
from rl_jax.pieces.logits.transforms import policies_of
from rl_jax.runtime import layout
from rl_jax.types import ENVIRONMENT, PAD, POLICY, Array, Trajectories, Turns

# Tokens of an observation that are fed at once. While a row has so many left,
# this costs no more products than single steps, which would read the weights
# and the cache for each of them.
FED = 8


class Playing(struct.PyTreeNode, kw_only=True):
  """Episodes between two turns.

  row: those of all rows that may continue, a slot each; of a shard its own
  numbers. caches: keys and values of the policy and of others that transforms
  read, of the slots, without rotations. step: the token that a slot gets next;
  all before the last one have been fed. num_prompts: of all rows.
  """

  rows: Rows
  row_W: Array
  step_W: Array
  caches: tuple[models.RowCache, ...]
  num_prompts: int = struct.field(pytree_node=False)

  @property
  def max_tokens(self) -> int:
    """The tokens that a row has room for."""
    return self.rows.response_BT.shape[1]

  @property
  def rows_of_slots(self) -> Array:
    """row_W, a constant while each row has its slot."""
    total = self.rows.length_B.shape[0]
    if self.row_W.shape[0] == total:
      return jnp.arange(total, dtype=jnp.int32)
    return self.row_W

  def places(self) -> tuple[Array, Array] | None:
    """The `places` of attend_response."""
    return slots.places_of(self.row_W, self.rows.length_B.shape[0])


class Observations(struct.PyTreeNode, kw_only=True):
  """Observations: `length` of the ids; live: still playing."""

  ids_BO: Array
  length_B: Array
  live_B: Array


def begin(
  params: dict[str, Any],
  traj: Trajectories,
  key: Array,
  *,
  cfg: models.ModelConfig,
  sampling: SamplingConfig,
  turn_tokens: int,
) -> tuple[Any, Playing]:
  """(weights for the turns, the episodes after their first turn).

  A turn ends at a token of sampling.eos_ids, or after turn_tokens.
  """
  rows = first_rows(traj, key, sampling, turn_tokens)
  weights, begun = prefilled(params, traj, cfg, sampling)

  def shard(weights, sampling, begun, rows):
    playing = started(weights, cfg, sampling, begun, rows, traj.num_prompts)
    total, max_tokens = rows.response_BT.shape
    decoder = _decoder(weights, cfg, sampling, begun, total, max_tokens)
    return _until_all_wait(decoder, playing)

  by_rows = layout.by_rows(shard, (False, False, True, True), traj.num_prompts)
  return weights, by_rows(weights, sampling, begun, rows)


def first_rows(
  traj: Trajectories,
  key: Array,
  sampling: SamplingConfig,
  turn_tokens: int,
  acting_B: Array | None = None,
) -> Rows:
  """The rows of traj before their first turn.

  traj: empty rows, or unfinished ones that continue inside a turn, in whose
  tokens a stop text may begin. acting: rows that have this turn, None: all; the
  others wait for their first observation, which must not be empty.
  """
  rows = unfinished_rows(traj, key, turn_tokens)
  if acting_B is not None:
    rows = rows.replace(limit_B=jnp.where(acting_B, rows.limit_B, 0))
  if sampling.stop_SV is not None:
    since_B = _open_turns(traj)
    rows = rows.replace(stop_B=stop_states(traj, sampling, since_B))
  return rows


def prefilled(
  params: dict[str, Any],
  traj: Trajectories,
  cfg: models.ModelConfig,
  sampling: SamplingConfig,
) -> tuple[Any, Any]:
  """(weights for the turns, what `prefill` returns), of all policies."""
  policies = [params, *policies_of(sampling.transforms, params).values()]
  begun = [
    models.prefill(policy, cfg, traj.prompt_NP, traj.prompt_mask_NP)
    for policy in policies
  ]
  weights = [
    prepare_weights(policy, cfg, sampling.reads_values) for policy in policies
  ]
  return weights, begun


def started(
  weights: Any,
  cfg: models.ModelConfig,
  sampling: SamplingConfig,
  begun: Any,
  rows: Rows,
  num_prompts: int,
) -> Playing:
  """The rows of a shard with their first tokens; num_prompts: of all rows."""
  total, max_tokens = rows.response_BT.shape
  decoder = _decoder(weights, cfg, sampling, begun, total, max_tokens)
  row_B = jnp.arange(total, dtype=jnp.int32)
  return Playing(
    rows=decoder.first_tokens(rows, row_B, jnp.ones(total, bool)),
    row_W=row_B,
    step_W=jnp.ones_like(row_B),
    caches=tuple(
      models.for_turns(cfg, prompt, total, max_tokens) for _, prompt in begun
    ),
    num_prompts=num_prompts,
  )


def _open_turns(traj):
  """Returns where the text of the turn begins that each row is in; its end if
  none.
  """
  if traj.turn_BT is None:  # empty rows
    return traj.length_B
  there_BT = traj.kind_BT != PAD
  last_B = jnp.where(there_BT, traj.turn_BT, 0).max(axis=1)
  own_BT = there_BT & (traj.turn_BT == last_B[:, None])
  own_BT &= traj.kind_BT != ENVIRONMENT
  return jnp.where(own_BT.any(axis=1), own_BT.argmax(axis=1), traj.length_B)


def opponents(traj: Trajectories) -> Trajectories:
  """The same empty rows with their own draws, for another policy."""
  return traj.replace(
    row_id_B2=traj.row_id_B2 + jnp.array([[0, traj.group_size]])
  )


def turn(
  weights: Any,
  playing: Playing,
  said: Observations,
  *,
  cfg: models.ModelConfig,
  sampling: SamplingConfig,
  turn_tokens: int,
) -> Playing:
  """Feeds what environments have said, and draws the next turn."""

  def shard(weights, sampling, playing, said):
    rows = _with_observation(playing.rows, said, turn_tokens)
    total, max_tokens = rows.response_BT.shape
    decoder = _decoder(weights, cfg, sampling, (), total, max_tokens)
    playing = playing.replace(rows=rows)
    playing = _feed_observations(decoder, playing)
    return _until_all_wait(decoder, playing)

  by_rows = layout.by_rows(
    shard, (False, False, True, True), playing.num_prompts
  )
  return by_rows(weights, sampling, playing, said)


def decoder_of_turns(
  weights: Any,
  cfg: models.ModelConfig,
  sampling: SamplingConfig,
  total: int,
  max_tokens: int,
) -> decode.Decoder:
  """The decoder of rows whose prompts have been encoded."""
  return _decoder(weights, cfg, sampling, (), total, max_tokens)


def _decoder(weights, cfg, sampling, begun, total, max_tokens):
  group = total // begun[0][0].shape[0] if begun else 1
  return decode.Decoder(weights, cfg, sampling, begun, group, max_tokens)


def _with_observation(rows: Rows, said: Observations, turn_tokens: int) -> Rows:
  """Rows that continue have the ids after their tokens, and a new limit."""
  total, max_tokens = rows.response_BT.shape
  row_B1 = jnp.arange(total)[:, None]
  place_1O = jnp.arange(said.ids_BO.shape[1])[None]
  new_BO = (place_1O < said.length_B[:, None]) & said.live_B[:, None]
  # Where nothing is to be written: past the last token.
  to_BO = jnp.where(new_BO, rows.length_B[:, None] + place_1O, max_tokens)

  def write(x, value):
    return x.at[row_B1, to_BO].set(value, mode='drop')

  length_B = rows.length_B + jnp.where(said.live_B, said.length_B, 0)
  limit_B = jnp.minimum(length_B + turn_tokens, max_tokens)
  if rows.stop_B is not None:  # a stop text is one of a turn
    rows = rows.replace(stop_B=jnp.zeros_like(rows.stop_B))
  return rows.replace(
    response_BT=write(rows.response_BT, said.ids_BO),
    kind_BT=write(rows.kind_BT, ENVIRONMENT),
    length_B=length_B,
    given_B=length_B,
    limit_B=jnp.where(said.live_B, limit_B, 0),
    finished_B=rows.finished_B & ~said.live_B,
  )


def _feed_observations(decoder: Any, playing: Playing) -> Playing:
  """Feeds FED known tokens of each row, as long as some row has so many."""
  row_W = playing.rows_of_slots

  def known(p):  # to be fed before the row draws, without the last
    left_W = p.rows.given_B[row_W] - p.step_W
    return jnp.where(p.rows.finished_B[row_W], 0, left_W)

  def feed(p):
    count_W = jnp.clip(known(p), 0, FED)
    return fed(decoder.weights, decoder.cfg, p, count_W, FED)

  return lax.while_loop(lambda p: (known(p) >= FED).any(), feed, playing)


def fed(
  weights: Any,
  cfg: models.ModelConfig,
  playing: Playing,
  count_W: Array,
  tokens: int,
) -> Playing:
  """Feeds the next count_W known tokens of each slot, at most `tokens`."""
  p, row_W, places = playing, playing.rows_of_slots, playing.places()
  place_WS = p.step_W[:, None] - 1 + jnp.arange(tokens)[None]
  token_WS = p.rows.response_BT.at[row_W[:, None], place_WS].get(mode='clip')
  caches = []
  for own, cache in zip(weights, p.caches, strict=True):
    _, cache = models.decode_block(
      own,
      cfg,
      token_WS,
      p.step_W - 1,
      _with_rotations(cfg, cache),
      places,
      count_B=count_W,
    )
    caches.append(cache.replace(rotations=()))
  return p.replace(step_W=p.step_W + count_W, caches=tuple(caches))


def _until_all_wait(decoder: Any, playing: Playing) -> Playing:
  """Steps until every row has ended its turn."""
  row_W = playing.rows_of_slots

  def going(p):
    return (p.step_W < p.rows.limit_B[row_W]) & ~p.rows.finished_B[row_W]

  def advance(p):
    return advanced(decoder, p, going(p))

  return lax.while_loop(lambda p: going(p).any(), advance, playing)


def advanced(
  decoder: decode.Decoder, playing: Playing, going_W: Array
) -> Playing:
  """Feeds the last token of each slot; those that are going get the next."""
  p, row_W, places = playing, playing.rows_of_slots, playing.places()
  token_W = p.rows.response_BT.at[row_W, p.step_W - 1].get(mode='clip')
  caches = [_with_rotations(decoder.cfg, c) for c in p.caches]
  found = [
    models.decode_step(
      w, decoder.cfg, token_W, p.step_W - 1, jnp.int32(0), cache, places
    )
    for w, cache in zip(decoder.weights, caches, strict=True)
  ]
  hidden, caches = zip(*found, strict=True)
  draw = functools.partial(
    decoder.draw, row_W=row_W, step_W=p.step_W, hidden=hidden, new_W=going_W
  )
  # While observations are fed there are no logits to compute.
  samples = (going_W & (p.step_W >= p.rows.given_B[row_W])).any()
  return p.replace(
    rows=lax.cond(samples, draw, lambda rows: rows, p.rows),
    step_W=p.step_W + going_W,
    caches=tuple(cache.replace(rotations=()) for cache in caches),
  )


def _with_rotations(cfg: models.ModelConfig, cache: models.RowCache):
  """Constants of the loop, of all positions."""
  positions = cache.prompt.mask_NP.shape[1] + cache.places
  return cache.replace(rotations=rope.tables(cfg, jnp.arange(positions)))


class HasRows(Protocol):
  """Episodes on the device, whatever else they hold."""

  @property
  def rows(self) -> Rows: ...


def finish(
  traj: Trajectories,
  playing: HasRows,
  finished_B: Array,
  turn_BT: Array,
  turns: Turns,
  role_B: Array | None = None,
  context_BT: Array | None = None,
) -> Trajectories:
  """The record of episodes that are over; role: of players of a game.

  context: of tasks that rewrite contexts.
  """
  rows = playing.rows
  calls_BT = jnp.take_along_axis(turns.calls_BK, jnp.maximum(turn_BT, 0), 1) > 0
  calls_BT = calls_BT & (rows.kind_BT == POLICY)
  first_B = jnp.where(calls_BT.any(axis=1), calls_BT.argmax(axis=1), -1)
  extras = {'first_call_B': first_B}
  if role_B is not None:
    extras['role_B'] = role_B
  return traj.replace(
    response_BT=rows.response_BT,
    kind_BT=rows.kind_BT,
    logp_behaviour_BT=rows.logp_BT,
    length_B=rows.length_B,
    finished_B=finished_B,
    mask_BT=(rows.kind_BT == POLICY).astype(jnp.float32),
    turn_BT=turn_BT,
    context_BT=context_BT,
    turns=turns,
    extras={**traj.extras, **extras},
  )
