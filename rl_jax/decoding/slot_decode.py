"""Episodes whose rows do not wait for each other: two programs of fixed shape.

A table on the device has the tokens of all rows, and their keys and values. A
call works on some of them, which the host has chosen, in as many slots:

  feed    puts observations after the tokens of these rows and feeds them, in
          chunks that begin where the observation of a row does
  sample  draws BURST tokens of each of these rows, or up to the end of its turn

What a row computes depends on its own tokens and on the number of slots, never
on when it is chosen or with which others, and what it draws depends only on
counters. So shapes are fixed and the order is free. Whether another number of
slots computes the same bits is found out at the start (slot_engine).
"""

from typing import Any, cast

from flax import struct
from jax import lax
import jax.numpy as jnp

from rl_jax import models
from rl_jax.decoding import slots, turn_decode
from rl_jax.decoding.sampling import SamplingConfig
from rl_jax.decoding.slots import Rows
from rl_jax.runtime import layout
from rl_jax.types import ENVIRONMENT, Array, Trajectories

BURST = 8  # tokens between two looks at what rows have drawn


class Table(struct.PyTreeNode, kw_only=True):
  """All rows between two calls.

  step: the token that a row gets next; all before the last one have been fed.
  caches: of the policy and of others that transforms read, in order of rows.
  num_prompts: of all rows.
  """

  rows: Rows
  step_B: Array
  caches: tuple[models.RowCache, ...]
  num_prompts: int = struct.field(pytree_node=False)


class Chosen(struct.PyTreeNode, kw_only=True):
  """The rows of a call; those that are not live only fill its slots.

  row: different rows, all in order if there are as many; of a shard its own
  numbers.
  """

  row_V: Array
  live_V: Array


class Observed(struct.PyTreeNode, kw_only=True):
  """The observations of chosen rows: the first `length` of the ids.

  forget: rows that no longer see what is before these ids, but for the prompt.
  """

  ids_VO: Array
  length_V: Array
  forget_V: Array


class Drawn(struct.PyTreeNode, kw_only=True):
  """The results of a burst that the host reads, by slot.

  token: the new tokens of each row, `count` of them. finished: its turn ended
  by itself. going: it has not ended.
  """

  token_VS: Array
  count_V: Array
  finished_V: Array
  going_V: Array


def begin(
  params: dict[str, Any],
  traj: Trajectories,
  key: Array,
  *,
  cfg: models.ModelConfig,
  sampling: SamplingConfig,
  turn_tokens: int,
) -> tuple[Any, Table, Drawn]:
  """(weights for the calls, the table, the first token of each empty row)."""
  rows = turn_decode.first_rows(traj, key, sampling, turn_tokens)
  weights, prompts = turn_decode.prefilled(params, traj, cfg, sampling)

  def shard(weights, sampling, prompts, rows):
    playing = turn_decode.started(
      weights, cfg, sampling, prompts, rows, traj.num_prompts
    )
    row_B = playing.row_W
    return Table(
      rows=playing.rows,
      step_B=playing.step_W,
      caches=playing.caches,
      num_prompts=traj.num_prompts,
    ), _drawn(playing.rows, row_B, jnp.zeros_like(row_B), playing.step_W)

  by_rows = layout.by_rows(shard, (False, False, True, True), traj.num_prompts)
  return weights, *by_rows(weights, sampling, prompts, rows)


def feed(
  weights: Any,
  table: Table,
  chosen: Chosen,
  said: Observed,
  *,
  cfg: models.ModelConfig,
  turn_tokens: int,
  chunk: int,
) -> Table:
  """Live rows have their observations, and may have another turn.

  All known tokens but the last are fed, `chunk` at a time.
  """

  def shard(weights, table, chosen, said):
    row_V = chosen.row_V
    table = _observed(table, chosen, said, turn_tokens)
    playing = _taken(table, chosen)

    def known(p):
      return jnp.where(chosen.live_V, p.rows.given_B[row_V] - p.step_W, 0)

    def some(p):
      count_V = jnp.clip(known(p), 0, chunk)
      return turn_decode.fed(weights, cfg, p, count_V, chunk)

    playing = lax.while_loop(lambda p: (known(p) > 0).any(), some, playing)
    return _put_back(table, playing)

  split = (False, True, True, True)
  by_rows = layout.by_rows(shard, split, table.num_prompts)
  return by_rows(weights, table, chosen, said)


def sample(
  weights: Any,
  table: Table,
  chosen: Chosen,
  *,
  cfg: models.ModelConfig,
  sampling: SamplingConfig,
) -> tuple[Table, Drawn]:
  """BURST tokens of each live row, or up to the end of its turn.

  All that was known of them but the last token has been fed.
  """

  def shard(weights, sampling, table, chosen):
    playing, row_V = _taken(table, chosen), chosen.row_V
    before_V = playing.step_W
    decoder = turn_decode.decoder_of_turns(
      weights, cfg, sampling, *table.rows.response_BT.shape
    )

    def going(p):
      limit_V = p.rows.limit_B[row_V]
      going_V = (p.step_W < limit_V) & ~p.rows.finished_B[row_V]
      return going_V & chosen.live_V

    def one(carried):
      i, p = carried
      return i + 1, turn_decode.advanced(decoder, p, going(p))

    _, playing = lax.while_loop(
      lambda carried: (carried[0] < BURST) & going(carried[1]).any(),
      one,
      (jnp.int32(0), playing),
    )
    drawn = _drawn(playing.rows, row_V, before_V, playing.step_W)
    return _put_back(table, playing), drawn

  by_rows = layout.by_rows(shard, (False, False, True, True), table.num_prompts)
  return by_rows(weights, sampling, table, chosen)


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
    rows = rows.replace(stop_B=put(rows.stop_B, 0))
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


def _drawn(rows, row_V, before_V, after_V):
  """The tokens of each row from `before` on."""
  place_VS = before_V[:, None] + jnp.arange(BURST)[None]
  token_VS = rows.response_BT.at[row_V[:, None], place_VS].get(mode='clip')
  finished_V = rows.finished_B[row_V]
  return Drawn(
    token_VS=token_VS,
    count_V=after_V - before_V,
    finished_V=finished_V,
    going_V=(after_V < rows.limit_B[row_V]) & ~finished_V,
  )


def _taken(table, chosen):
  """The chosen rows in slots; if these are all, each has its own."""
  total, row_V = table.step_B.shape[0], chosen.row_V
  every_B = jnp.arange(total, dtype=jnp.int32)
  if row_V.shape[0] == total:
    row_V, caches = every_B, table.caches
  else:
    found = slots.taken(table.caches, every_B, row_V, total)
    caches = cast(tuple[models.RowCache, ...], found)
  return turn_decode.Playing(
    rows=table.rows,
    row_W=row_V,
    step_W=table.step_B[row_V],
    caches=caches,
    num_prompts=table.num_prompts,
  )


def _put_back(table, playing):
  """The table with what the slots have now."""
  row_V = playing.row_W
  if row_V.shape[0] == table.step_B.shape[0]:
    return table.replace(
      rows=playing.rows, step_B=playing.step_W, caches=playing.caches
    )

  def put(x_B, value_V):
    return x_B.at[row_V].set(value_V, unique_indices=True)

  def put_all(x, value):
    pairs = zip(x, value, strict=True)
    return tuple(tuple(map(put, *pair)) for pair in pairs)

  caches = tuple(
    cache.replace(
      k_BJKT=put_all(cache.k_BJKT, own.k_BJKT),
      v_BJTK=put_all(cache.v_BJTK, own.v_BJTK),
    )
    for cache, own in zip(table.caches, playing.caches, strict=True)
  )
  return table.replace(
    rows=playing.rows, step_B=put(table.step_B, playing.step_W), caches=caches
  )
