"""Feeding several tokens of each row at once: drafts, and observations."""

import functools
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from rl_jax.models import attention, decoding, kv_cache, layers
from rl_jax.types import Array


def decode_block(
  params: dict[str, Any],
  cfg: Any,
  token_BS: Array,
  step_B: Array,
  cache: kv_cache.RowCache,
  places: tuple[Array, Array] | None = None,
  count_B: Array | None = None,
) -> tuple[Array, kv_cache.RowCache]:
  """Feeds response tokens step, ..., step + S - 1 of each row.

  Returns states [B, S, D], each of which predicts the token after its own, and
  the cache with these tokens in their columns. What was there is overwritten,
  and no token sees a later column: tokens that turned out to be wrong need not
  be removed. params, places: see decode_step. cache: of `for_blocks`; step + S
  is at most its places. count: of how many tokens the keys and values are
  written, the rest of S is ignored; the cache may then be of `for_turns`.
  """
  (B, S), prompt = token_BS.shape, cache.prompt
  step_BS = step_B[:, None] + jnp.arange(S)[None]
  behind_BS = cache.behind_prompt(step_B)[:, None] + jnp.arange(S)[None]
  times = (step_BS, behind_BS, cache.context_B, count_B)
  start_N = prompt.mask_NP.astype(jnp.int32).sum(axis=1)
  rows = B if places is None else places[1].shape[0]
  start_B = jnp.repeat(start_N, rows // start_N.shape[0])
  if places is not None:
    start_B = start_B[places[0]]
  position = (start_B[:, None] + behind_BS).reshape(-1)

  def look_up(table):
    return table.at[position].get(mode='clip')

  tables = jax.tree.map(look_up, cache.rotations)
  # Products have one row for each token: [B * S, D].
  x = layers.embed(params, cfg, token_BS.reshape(-1))

  def one(x, layer, shared, own, number):
    at = (tables, places, times)
    return _layer_block(layer, cfg, x, shared, own, number, at)

  x, cache = decoding.through_layers(cfg, one, x, params['layers'], cache)
  hidden = layers.norm(x, params['model']['final_norm'], cfg)
  return hidden.reshape(B, S, -1), cache


@functools.partial(jax.jit, static_argnames='cfg')  # traced once for all layers
def _layer_block(layer, cfg, x, shared, own, number, at):
  """(states after the layer, its keys, its values); writes S columns."""
  tables, places, (step_BS, behind_BS, context_B, count_B) = at
  q, k, v = (
    y.reshape(*step_BS.shape, *y.shape[1:])
    for y in layers.qkv(layer, cfg, x, tables)
  )
  limits, first = layers.limits(cfg, layer), 0
  keys, values, read = [], [], []
  for k_BJKT, v_BJTK in zip(*own, strict=True):
    size = k_BJKT.shape[-1]
    if count_B is None:
      k_BJKT, v_BJTK = _put_all((k_BJKT, v_BJTK), (k, v), step_BS[:, 0], number)
    else:
      column_BS = _columns(step_BS, count_B, first, size)
      k_BJKT, v_BJTK = _put_some((k_BJKT, v_BJTK), (k, v), column_BS, number)
    token_T = jnp.arange(first, first + size)
    age_BST = step_BS[..., None] - token_T[None, None]
    seen_BST = (age_BST >= 0) & limits.near(age_BST)
    seen_BST &= kv_cache.remembered(token_T, context_B)
    keys.append(k_BJKT)
    values.append(v_BJTK)
    one = (kv_cache.layer_of(y, number) for y in (k_BJKT, v_BJTK))
    read.append((*one, seen_BST))
    first += size
  attended = attention.attend_response(
    q,
    shared,
    read[0],
    places,
    later=read[1:],
    limits=limits,
    step=behind_BS,
  )
  attended = attended.reshape(x.shape[0], *attended.shape[2:])
  x = layers.finish_layer(layer, cfg, x, attended)
  return x, tuple(keys), tuple(values)


def _put_all(caches, new, column_B, number):
  """Keys and values with S columns from the given one of each row replaced."""
  if number is not None:
    column_BS = column_B[:, None] + jnp.arange(new[0].shape[1])[None]
    return _put_some(caches, new, column_BS, number)

  def put(axis, cache, new, column):
    start = [0] * new.ndim
    start[axis] = column
    return lax.dynamic_update_slice(cache, new, start)

  return tuple(
    jax.vmap(functools.partial(put, axis))(cache, x, column_B)
    for axis, cache, x in zip(
      (2, 1), caches, attention.cached(*new), strict=True
    )
  )


def _columns(step_BS, count_B, first, size):
  """Returns where tokens are written in a block of columns; `size`: nowhere."""
  counted_BS = jnp.arange(step_BS.shape[1])[None] < count_B[:, None]
  here_BS = counted_BS & (step_BS >= first)
  return jnp.where(here_BS, step_BS - first, size)


def _put_some(caches, new, column_BS, number):
  """The same with a column for each token; those that do not exist are none."""
  (k_BJKT, v_BJTK), (k_BSJK, v_BSJK) = caches, new
  k = kv_cache.put_tokens(k_BJKT, k_BSJK, column_BS, 3, number)
  return k, kv_cache.put_tokens(v_BJTK, v_BSJK, column_BS, 2, number)
