"""Episodes whose rows do not wait for each other: two programs of fixed shape.

A table on the device has the tokens of all rows, and keys and values of as many
as its cache has places for. A call works on some of them, which the host has
chosen, in as many slots:

  feed    puts observations after the tokens of these rows and feeds them, in
          chunks that begin where the observation of a row does
  sample  draws BURST tokens of each of these rows, or up to the end of its
          turn; more while no turn ends, if the host asks for them

What a row computes depends on its own tokens and on the number of slots, never
on when it is chosen or with which others, and what it draws depends only on
counters. So shapes are fixed and the order is free. Whether other numbers of
slots compute the same bits, so that calls with few rows may be narrower, is
found out at the start (slot_engine). What a place holds may be copied to the
host and back (`kept`, `returned`), which changes no bit.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from rl_jax import models
from rl_jax.decoding import slots, turn_decode
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.decoding.slots import Rows
from rl_jax.runtime import layout
from rl_jax.types import ENVIRONMENT, Array, Trajectories

BURST = 8  # tokens between two looks at what rows have drawn
LONGEST = 64  # of rows that all continue, while nobody else waits for a slot


class Table(struct.PyTreeNode, kw_only=True):
  """All rows between two calls.

  step: the token that a row gets next; all before the last one have been fed.
  caches: of the policy and of others that transforms read; their contexts are
  those of all rows, the others those of places. num_prompts: of all rows.
  """

  rows: Rows
  step_B: Array
  caches: tuple[models.RowCache, ...]
  num_prompts: int = struct.field(pytree_node=False)


class Chosen(struct.PyTreeNode, kw_only=True):
  """The rows of a call; those that are not live only fill its slots.

  row: different rows, all in order if there are as many; of a shard its own
  numbers. place: that they have in the caches.
  """

  row_V: Array
  place_V: Array
  live_V: Array


class Observed(struct.PyTreeNode, kw_only=True):
  """The observations of chosen rows: the first `length` of the ids.

  forget: rows that no longer see what is before these ids, but for the prompt.
  inside: rows that continue in a turn, of which all tokens so far are known.
  """

  ids_VO: Array
  length_V: Array
  forget_V: Array
  inside_V: Array


class Drawn(NamedTuple):
  """The results of a burst on the host, by slot.

  token: the new tokens of each row, `count` of them. finished: its turn ended
  by itself. going: it has not ended.
  """

  token_VS: np.ndarray
  count_V: np.ndarray
  finished_V: np.ndarray
  going_V: np.ndarray


# What host and device tell each other in a call is one int32 array with a line
# a slot, as each array costs a transfer. Its columns, before ids, are those of
# `feed`, `sample` and results.
_SAID = ('row', 'place', 'live', 'length', 'forget', 'inside')
_CHOSEN = ('row', 'place', 'steps')  # of `sample`; no steps: it is not live
_DRAWN = ('count', 'finished', 'going')  # of results


def columns(most: int) -> tuple[int, int]:
  """Columns of the arrays of (feed, sample); most: ids of an observation."""
  return len(_SAID) + most, len(_CHOSEN)


def places_of_shard(
  rows: int, tokens: int, cache_tokens: int | None, shards: int
) -> int:
  """Rows that the cache of a shard has places for; rows: all of the shard.

  tokens: of a row. cache_tokens: of all shards; None: all rows have a place.
  """
  if cache_tokens is None:
    return rows
  return min(rows, max(1, cache_tokens // shards // tokens))


def for_feed(
  row_V: np.ndarray, place_V: np.ndarray, live_V: np.ndarray, most: int
) -> np.ndarray:
  """The array of `feed`, in which nothing is said yet; most: see columns."""
  said_VX: np.ndarray = np.zeros((len(row_V), columns(most)[0]), np.int32)
  said_VX[:, 0], said_VX[:, 1], said_VX[:, 2] = row_V, place_V, live_V
  return said_VX


def say(
  said_VX: np.ndarray,
  slot: int,
  ids: Sequence[int],
  forget: bool,
  inside: bool = False,
) -> None:
  """Writes the observation of a slot into the array of `feed`; see Observed."""
  said_VX[slot, 3:6] = len(ids), forget, inside
  said_VX[slot, len(_SAID) : len(_SAID) + len(ids)] = ids


def for_sample(
  row_V: np.ndarray, place_V: np.ndarray, live_V: np.ndarray, steps: int
) -> np.ndarray:
  """The array of `sample`; steps: see there."""
  return np.stack([row_V, place_V, live_V * steps], axis=1).astype(np.int32)


def read(drawn_VX: np.ndarray) -> Drawn:
  """The results of `begin` and `sample`."""
  count_V, finished_V, going_V = drawn_VX[:, : len(_DRAWN)].T
  return Drawn(
    token_VS=drawn_VX[:, len(_DRAWN) :],
    count_V=count_V,
    finished_V=finished_V > 0,
    going_V=going_V > 0,
  )


def begin(
  params: dict[str, Any],
  traj: Trajectories,
  key: Array,
  *,
  cfg: models.ModelConfig,
  sampling: SamplingConfig,
  turn_tokens: int,
  cache_tokens: int | None = None,
  acting_B: Array | None = None,
) -> tuple[Any, Table, Array]:
  """(weights for the calls, the table, the first token of each empty row).

  cache_tokens: see places_of_shard; the first places are those of the first
  rows. acting: rows that have a first token, None: all; the others wait for
  their first observation, which must not be empty.
  """
  rows = turn_decode.first_rows(traj, key, sampling, turn_tokens, acting_B)
  weights, prompts = turn_decode.prefilled(params, traj, cfg, sampling)
  shards = layout.parts(traj.num_prompts, 'sampled_rows')

  def shard(weights, sampling, prompts, rows):
    playing = turn_decode.started(
      weights, cfg, sampling, prompts, rows, traj.num_prompts
    )
    row_B = playing.row_W
    total, tokens = playing.rows.response_BT.shape
    places = places_of_shard(total, tokens, cache_tokens, shards)
    return Table(
      rows=playing.rows,
      step_B=playing.step_W,
      caches=tuple(_of_places(cache, places) for cache in playing.caches),
      num_prompts=traj.num_prompts,
    ), _drawn(playing.rows, row_B, jnp.zeros_like(row_B), playing.step_W, 1)

  by_rows = layout.by_rows(shard, (False, False, True, True), traj.num_prompts)
  return weights, *by_rows(weights, sampling, prompts, rows)


def feed(
  weights: Any,
  table: Table,
  said_VX: Array,
  *,
  cfg: models.ModelConfig,
  turn_tokens: int,
  chunk: int,
) -> Table:
  """Live rows have their observations, and may have another turn.

  All known tokens but the last are fed, `chunk` at a time. said: see for_feed.
  """

  def shard(weights, table, said_VX):
    row_V, place_V, live_V, length_V, *flags = said_VX[:, : len(_SAID)].T
    forget_V, inside_V = (x_V > 0 for x_V in flags)
    chosen = Chosen(row_V=row_V, place_V=place_V, live_V=live_V > 0)
    said = Observed(
      ids_VO=said_VX[:, len(_SAID) :],
      length_V=length_V,
      forget_V=forget_V,
      inside_V=inside_V,
    )
    table = _observed(table, chosen, said, turn_tokens)
    playing = _taken(table, chosen, cfg)

    def known(p):
      return jnp.where(chosen.live_V, p.rows.given_B[row_V] - p.step_W, 0)

    def some(p):
      count_V = jnp.clip(known(p), 0, chunk)
      return turn_decode.fed(weights, cfg, p, count_V, chunk)

    playing = lax.while_loop(lambda p: (known(p) > 0).any(), some, playing)
    return _put_back(table, playing, chosen)

  by_rows = layout.by_rows(shard, (False, True, True), table.num_prompts)
  return by_rows(weights, table, said_VX)


def sample(
  weights: Any,
  table: Table,
  chosen_V3: Array,
  *,
  cfg: models.ModelConfig,
  sampling: SamplingConfig,
  longest: int,
) -> tuple[Table, Array]:
  """BURST tokens of each live row, or up to the end of its turn.

  All that was known of them but the last token has been fed. Of more steps
  (for_sample), `longest` at most, those after BURST are taken while all of the
  rows continue. So the numbers of steps may differ, and the program does not.
  """

  def shard(weights, sampling, table, chosen_V3):
    row_V, place_V, steps_V = chosen_V3.T
    chosen = Chosen(row_V=row_V, place_V=place_V, live_V=steps_V > 0)
    most = jnp.minimum(steps_V.max(), longest)
    playing = _taken(table, chosen, cfg)
    row_V, before_V = playing.rows_of_slots, playing.step_W
    decoder = turn_decode.decoder_of_turns(
      weights, cfg, sampling, *table.rows.response_BT.shape
    )

    def going(p):
      limit_V = p.rows.limit_B[row_V]
      going_V = (p.step_W < limit_V) & ~p.rows.finished_B[row_V]
      return going_V & chosen.live_V

    def one(carried):
      i, going_V, p = carried
      p = turn_decode.advanced(decoder, p, going_V)
      return i + 1, going(p), p

    def lasts(carried):
      i, going_V, _ = carried
      all_go_on = (going_V == chosen.live_V).all()
      return (i < most) & going_V.any() & ((i < BURST) | all_go_on)

    first = jnp.int32(0), going(playing), playing
    *_, playing = lax.while_loop(lasts, one, first)
    drawn_VX = _drawn(playing.rows, row_V, before_V, playing.step_W, longest)
    return _put_back(table, playing, chosen), drawn_VX

  by_rows = layout.by_rows(shard, (False, False, True, True), table.num_prompts)
  return by_rows(weights, sampling, table, chosen_V3)


def _of_places(cache, places):
  """The cache without the keys and values of the other rows."""
  k, v = jax.tree.map(lambda x: x[:places], (cache.k_BJKT, cache.v_BJTK))
  return cache.replace(k_BJKT=k, v_BJTK=v)


def kept(table: Table, place_S: Array, *, cfg: models.ModelConfig) -> Any:
  """Keys and values of a place of each shard."""

  def shard(table, place_S):
    found = [c.take(place_S, cfg, at_rest=True) for c in table.caches]
    return [(cache.k_BJKT, cache.v_BJTK) for cache in found]

  by_rows = layout.by_rows(shard, (True, True), table.num_prompts)
  return by_rows(table, place_S)


def returned(table: Table, place_S: Array, keys: Any) -> Table:
  """The table with keys and values in a place of each shard.

  A place past the last one is none.
  """

  def shard(table, place_S, keys):
    def put(x, new):
      return x.at[place_S].set(new, mode='drop')

    caches = tuple(
      cache.replace(
        k_BJKT=jax.tree.map(put, cache.k_BJKT, k),
        v_BJTK=jax.tree.map(put, cache.v_BJTK, v),
      )
      for cache, (k, v) in zip(table.caches, keys, strict=True)
    )
    return table.replace(caches=caches)

  by_rows = layout.by_rows(shard, (True, True, True), table.num_prompts)
  return by_rows(table, place_S, keys)


def _observed(table, chosen, said, turn_tokens):
  """The table with the observations of the live rows, not yet fed."""
  rows, row_V = table.rows, chosen.row_V
  total, max_tokens = rows.response_BT.shape
  place_1O = jnp.arange(said.ids_VO.shape[1])[None]
  new_VO = (place_1O < said.length_V[:, None]) & chosen.live_V[:, None]
  before_V = rows.length_B[row_V]
  # Where nothing is to be written: past the last token, or the last row.
  to_VO = jnp.where(new_VO, before_V[:, None] + place_1O, max_tokens)
  to_V = jnp.where(chosen.live_V, row_V, total)

  def write(x_BT, value):
    return x_BT.at[row_V[:, None], to_VO].set(value, mode='drop')

  def put(x_B, value):
    return x_B.at[to_V].set(value, mode='drop')

  def see(context_B):
    seen_V = jnp.where(said.forget_V, before_V, context_B[row_V])
    return put(context_B, seen_V)

  given_V = before_V + said.length_V
  if rows.stop_B is not None:  # a stop text is one of a turn
    stop_V = jnp.where(said.inside_V, rows.stop_B[row_V], 0)
    rows = rows.replace(stop_B=put(rows.stop_B, stop_V))
  rows = rows.replace(
    response_BT=write(rows.response_BT, said.ids_VO),
    kind_BT=write(rows.kind_BT, ENVIRONMENT),
    length_B=put(rows.length_B, given_V),
    given_B=put(rows.given_B, given_V),
    limit_B=put(rows.limit_B, jnp.minimum(given_V + turn_tokens, max_tokens)),
    finished_B=put(rows.finished_B, False),
  )
  caches = tuple(c.replace(context_B=see(c.context_B)) for c in table.caches)
  return table.replace(rows=rows, caches=caches)


def _drawn(rows, row_V, before_V, after_V, most):
  """The tokens of each row from `before` on, `most` at most; see `read`."""
  place_VS = before_V[:, None] + jnp.arange(most)[None]
  token_VS = rows.response_BT.at[row_V[:, None], place_VS].get(mode='clip')
  finished_V = rows.finished_B[row_V]
  going_V = (after_V < rows.limit_B[row_V]) & ~finished_V
  results_V3 = jnp.stack([after_V - before_V, finished_V, going_V], axis=1)
  return jnp.concatenate([results_V3, token_VS], axis=1)


def _taken(table, chosen, cfg):
  """The chosen rows in slots; if these are all, each has its own."""
  total, row_V = table.step_B.shape[0], chosen.row_V
  every_B = jnp.arange(total, dtype=jnp.int32)
  if row_V.shape[0] == total:
    row_V, caches = every_B, table.caches
  else:
    caches = _caches_of(table, chosen, cfg)
  return turn_decode.Playing(
    rows=table.rows,
    row_W=row_V,
    step_W=table.step_B[row_V],
    caches=caches,
    num_prompts=table.num_prompts,
  )


def _caches_of(table, chosen, cfg):
  """The caches of the chosen rows, with prompts as in Slots.narrowed."""
  total, row_V = table.step_B.shape[0], chosen.row_V

  def of_rows(cache):
    found = cache.take(chosen.place_V, cfg, at_rest=True)
    return found.replace(context_B=cache.context_B[row_V])

  found = list(map(of_rows, table.caches))
  if not slots.shares_prompts(total, row_V.shape[0]):
    group_V = row_V // (total // found[0].prompt.num_prompts)
    found = [
      c.replace(prompt=c.prompt.take(group_V, cfg, at_rest=True)) for c in found
    ]
  return tuple(found)


def _put_back(table, playing, chosen):
  """The table with what the slots have now."""
  row_V, place_V = playing.row_W, chosen.place_V
  if row_V.shape[0] == table.step_B.shape[0]:
    return table.replace(
      rows=playing.rows, step_B=playing.step_W, caches=playing.caches
    )

  def put(x, value_V):
    return x.at[place_V].set(value_V, unique_indices=True)

  def put_all(x, value):
    pairs = zip(x, value, strict=True)
    return tuple(tuple(map(put, *pair)) for pair in pairs)

  step_B = table.step_B.at[row_V].set(playing.step_W, unique_indices=True)

  caches = tuple(
    cache.replace(
      k_BJKT=put_all(cache.k_BJKT, own.k_BJKT),
      v_BJTK=put_all(cache.v_BJTK, own.v_BJTK),
    )
    for cache, own in zip(table.caches, playing.caches, strict=True)
  )
  return table.replace(rows=playing.rows, step_B=step_B, caches=caches)
