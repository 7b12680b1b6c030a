"""Feeding several tokens of each row at once: drafts, and observations."""

import functools
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from rl_jax.models import attention, kv_cache, layers
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

  Returns states [B, S, D], each of which predicts the token behind its own, and
  the cache with these tokens in their columns. What lay there is overwritten,
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
  look_up = lambda table: table.at[position].get(mode='clip')
  tables = jax.tree.map(look_up, cache.rotations)
  # Products have one row for each token: [B * S, D].
  x = layers.embed(params, cfg, token_BS.reshape(-1))
  keys, values = [], []
  for index, layer in enumerate(params['layers']):
    shared = (prompt.k_NJKP[index], prompt.v_NJPK[index], prompt.mask_NP)
    own = tuple(zip(cache.k_BJKT[index], cache.v_BJTK[index], strict=True))
    x, k, v = _layer_block(layer, cfg, x, tables, shared, own, places, times)
    keys.append(k)
    values.append(v)
  hidden = layers.norm(x, params['model']['final_norm'], cfg)
  cache = cache.replace(k_BJKT=tuple(keys), v_BJTK=tuple(values))
  return hidden.reshape(B, S, -1), cache


@functools.partial(jax.jit, static_argnames='cfg')  # traced once for all layers
def _layer_block(layer, cfg, x, tables, shared, own, places, times):
  """(states after the layer, its keys, its values); writes S columns."""
  step_BS, behind_BS, context_B, count_B = times
  q, k, v = (
    y.reshape(*step_BS.shape, *y.shape[1:])
    for y in layers.qkv(layer, cfg, x, tables)
  )
  limits, written, first = layers.limits(cfg, layer), [], 0
  for k_BJKT, v_BJTK in own:
    size = k_BJKT.shape[-1]
    if count_B is None:
      k_BJKT, v_BJTK = _put_all(k_BJKT, v_BJTK, k, v, step_BS[:, 0])
    else:
      column_BS = _columns(step_BS, count_B, first, size)
      k_BJKT, v_BJTK = _put_some(k_BJKT, v_BJTK, k, v, column_BS)
    token_T = jnp.arange(first, first + size)
    age_BST = step_BS[..., None] - token_T[None, None]
    seen_BST = (age_BST >= 0) & limits.near(age_BST)
    seen_BST &= kv_cache.remembered(token_T, context_B)
    written.append((k_BJKT, v_BJTK, seen_BST))
    first += size
  attended = attention.attend_response(
    *(q, shared, written[0], places),
    later=written[1:],
    limits=limits,
    step=behind_BS,
  )
  attended = attended.reshape(x.shape[0], *attended.shape[2:])
  keys, values, _ = zip(*written, strict=True)
  return layers.finish_layer(layer, cfg, x, attended), keys, values


def _put_all(k_BJKT, v_BJTK, k_BSJK, v_BSJK, column_B):
  """Keys and values with S columns from the given one of each row replaced."""
  put = jax.vmap(lax.dynamic_update_slice_in_dim, in_axes=(0, 0, 0, None))
  k, v = attention.cached(k_BSJK, v_BSJK)
  return put(k_BJKT, k, column_B, 2), put(v_BJTK, v, column_B, 1)


def _columns(step_BS, count_B, first, size):
  """Where tokens are written in a block of columns; `size`: nowhere."""
  counted_BS = jnp.arange(step_BS.shape[1])[None] < count_B[:, None]
  here_BS = counted_BS & (step_BS >= first)
  return jnp.where(here_BS, step_BS - first, size)


def _put_some(k_BJKT, v_BJTK, k_BSJK, v_BSJK, column_BS):
  """The same with a column for each token; those that do not exist are none."""
  row_B1 = jnp.arange(column_BS.shape[0])[:, None]
  every = slice(None)
  k = k_BJKT.at[row_B1, every, every, column_BS].set(k_BSJK, mode='drop')
  v = v_BJTK.at[row_B1, every, column_BS].set(v_BSJK, mode='drop')
  return k, v
