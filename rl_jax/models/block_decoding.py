"""Decoding several tokens of each row at once, for speculative decoding."""

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
) -> tuple[Array, kv_cache.RowCache]:
  """Feeds response tokens step, ..., step + S - 1 of each row.

  Returns states [B, S, D], each of which predicts the token behind its own, and
  the cache with these tokens in their columns. What lay there is overwritten,
  and no token sees a later column: tokens that turned out to be wrong need not
  be removed. params, places: see decode_step. cache: of `for_blocks`; step + S
  is at most its places.
  """
  (B, S), prompt = token_BS.shape, cache.prompt
  step_BS = step_B[:, None] + jnp.arange(S)[None]
  start_N = prompt.mask_NP.astype(jnp.int32).sum(axis=1)
  rows = B if places is None else places[1].shape[0]
  start_B = jnp.repeat(start_N, rows // start_N.shape[0])
  if places is not None:
    start_B = start_B[places[0]]
  position = (start_B[:, None] + step_BS).reshape(-1)
  look_up = lambda table: table.at[position].get(mode='clip')
  tables = jax.tree.map(look_up, cache.rotations)
  # Products have one row for each token: [B * S, D].
  x = layers.embed(params, cfg, token_BS.reshape(-1))
  keys, values = [], []
  for index, layer in enumerate(params['layers']):
    shared = (prompt.k_NJKP[index], prompt.v_NJPK[index], prompt.mask_NP)
    own = (*cache.k_BJKT[index], *cache.v_BJTK[index])
    x, k, v = _layer_block(layer, cfg, x, tables, shared, own, places, step_BS)
    keys.append((k,))
    values.append((v,))
  hidden = layers.norm(x, params['model']['final_norm'], cfg)
  cache = cache.replace(k_BJKT=tuple(keys), v_BJTK=tuple(values))
  return hidden.reshape(B, S, -1), cache


@functools.partial(jax.jit, static_argnames='cfg')  # traced once for all layers
def _layer_block(layer, cfg, x, tables, shared, own, places, step_BS):
  """(states after the layer, its keys, its values); writes S columns."""
  q, k, v = (
    y.reshape(*step_BS.shape, *y.shape[1:])
    for y in layers.qkv(layer, cfg, x, tables)
  )
  limits = layers.limits(cfg, layer)
  put = jax.vmap(lax.dynamic_update_slice_in_dim, in_axes=(0, 0, 0, None))
  k, v = attention.cached(k, v)
  k_BJKT = put(own[0], k, step_BS[:, 0], 2)
  v_BJTK = put(own[1], v, step_BS[:, 0], 1)
  age_BST = step_BS[..., None] - jnp.arange(k_BJKT.shape[-1])[None, None]
  seen_BST = (age_BST >= 0) & limits.near(age_BST)
  attended = attention.attend_response(
    q, shared, (k_BJKT, v_BJTK, seen_BST), places, limits=limits, step=step_BS
  )
  attended = attended.reshape(x.shape[0], *attended.shape[2:])
  return layers.finish_layer(layer, cfg, x, attended), k_BJKT, v_BJTK
