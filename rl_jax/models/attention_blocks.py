"""Attention by blocks of queries and of keys, whose scores are never all there.

The softmax of a query is kept as its maximum, its sum and its products with
values, to which one block of keys after the other is added (FlashAttention,
2205.14135). The backward pass computes the scores of each pair of blocks again.
So memory grows with the tokens, not with their square, on every platform, with
windows, capped scores, and tokens that are split over a mesh.

One loop runs over the pairs of blocks. Pairs that a causal mask hides are left
out; windows, which differ by layer, leave out none.

  I, L  blocks of queries and of keys
  M     queries of a block, times the R heads that share a key
  C     keys of a block
  H     G, or 1 where the rows of a group share keys
"""

import functools
from typing import NamedTuple

import jax
from jax import lax
from jax.ad_checkpoint import checkpoint_name
import jax.numpy as jnp
import numpy as np

from rl_jax.models import attention_kernels
from rl_jax.runtime import layout
from rl_jax.types import Array

MASKED = -1e30  # finite: differences of such maxima are numbers
LEAST_BLOCK = 128
MOST_BLOCK = 1024
MOST_BLOCKS = 16  # more pairs take longer than they save memory
# The place of a key that no query sees. Differences stay within int32.
NOWHERE = 2**30


class Keys(NamedTuple):
  """Keys and values, and the places of keys and queries.

  A query sees the keys whose places are at most its own, less than the window
  before it, and not before its first.
  """

  k_NHTJK: Array
  v_NHTJK: Array
  place_NHT: Array  # int32; NOWHERE: never seen. Axes may have size 1
  query_NGS: Array  # int32, places of the queries among these keys
  first_NGS: Array | None = None  # int32; None: all before a query
  causal: bool = False  # both places are 0, 1, 2, ..., so that pairs are few


def block_size(tokens: int) -> int:
  """Tokens of a block: LEAST_BLOCK, or more if there were many blocks."""
  size = -(-tokens // (MOST_BLOCKS * LEAST_BLOCK)) * LEAST_BLOCK
  return min(size, MOST_BLOCK)


def attend(
  q_NGSJRK: Array,
  parts: tuple[Keys, ...],
  cap: float | None = None,
  window: Array | None = None,
) -> Array:
  """Returns the attention of queries to all parts, [N, G, S, J, R, K].

  A query that sees no key gets 0. Scores and sums are float32.

  Args:
    q_NGSJRK: queries of G rows of N groups, scaled.
    parts: keys that one softmax is over.
    cap: scores become cap * tanh(score / cap).
    window: int32; None: all keys before a query.
  """
  causal = tuple(part.causal for part in parts)
  tensors = [
    (x.k_NHTJK, x.v_NHTJK, x.place_NHT, x.query_NGS, x.first_NGS) for x in parts
  ]
  leaves, tree = jax.tree.flatten((tensors, window))

  def local(q, *leaves):
    return _local(cap, causal, q, *jax.tree.unflatten(tree, leaves))

  # A loop over blocks holds no collective if every device has whole sequences.
  axes = [('rows', None, None, 'kv_heads', None, None)] + [
    ('rows', None, None, 'kv_heads', None)[: x.ndim] for x in leaves
  ]
  return layout.on_parts(local, (q_NGSJRK, *leaves), axes)


def _local(cap, causal, q_NGSJRK, tensors, window):
  """The same on one device."""
  N, G, S, J, R, K = q_NGSJRK.shape
  size = block_size(S)
  q = _in_blocks(q_NGSJRK, size, 0)  # [I, N, G, size, J, R, K]
  q = jnp.moveaxis(q, 4, 2).reshape(-1, N, J, G, size * R, K)
  blocks, pairs = [], []
  for (k, v, place, query, first), in_order in zip(
    tensors, causal, strict=True
  ):
    H, T = k.shape[1:3]
    wide = block_size(T)

    def of_queries(x, H=H):
      x = jnp.broadcast_to(x, (x.shape[0], G, S))
      x = jnp.repeat(_in_blocks(x, size, -1), R, axis=-1)
      return x.reshape(*x.shape[:2], H, -1)

    # [L, N, J, H, wide, K]
    k, v = (jnp.moveaxis(_in_blocks(x, wide, 0), 4, 2) for x in (k, v))
    first = None if first is None else of_queries(first)
    places = (_in_blocks(place, wide, NOWHERE), of_queries(query), first)
    blocks.append((k, v, places))
    pairs.append(_pairs(S, T, in_order))
  out = _attend_blocks(cap, tuple(pairs), q, blocks, window)
  out = jnp.moveaxis(out.reshape(-1, N, J, G, size, R, K), 0, 3)
  out = jnp.moveaxis(out.reshape(N, J, G, -1, R, K), 1, 3)
  return out[:, :, :S]


def _in_blocks(x: Array, size: int, fill: int) -> Array:
  """[N, H, T, ...] -> [blocks, N, H, size, ...], filled up at the end."""
  N, H, T, *rest = x.shape
  pad = [(0, 0), (0, 0), (0, -T % size), *((0, 0) for _ in rest)]
  x = jnp.pad(x, pad, constant_values=fill)
  return jnp.moveaxis(x.reshape(N, H, -1, size, *rest), 2, 0)


def _pairs(
  queries: int, keys: int, causal: bool
) -> tuple[tuple[int, int], ...]:
  """Pairs (block of queries, block of keys) of which one may see the other."""
  size, wide = block_size(queries), block_size(keys)
  return tuple(
    (i, j)
    for i in range(-(-queries // size))
    for j in range(-(-keys // wide))
    if not causal or j * wide < (i + 1) * size
  )


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _attend_blocks(cap, pairs, q_INJGMK, blocks, window):
  return _forward(cap, pairs, q_INJGMK, blocks, window)[0]


def _forward(cap, pairs, q, blocks, window):
  """(attention, residuals). The logarithm of a sum stands for the softmax."""
  state = (
    jnp.full(q.shape[:-1], MASKED),
    jnp.zeros(q.shape[:-1]),
    jnp.zeros(q.shape, jnp.float32),
  )
  for (k, v, places), of_part in zip(blocks, pairs, strict=True):

    def add(state, pair, k=k, v=v, places=places):
      i, j = pair
      rows = k.shape[3]
      scores, seen = _scores(
        _at(q, i, rows), _at(k, j), places, pair, (cap, window)
      )
      peak, total, out = (_at(x, i, rows) for x in state)
      top = jnp.maximum(peak, scores.max(-1))
      weights = jnp.where(seen, jnp.exp(scores - top[..., None]), 0.0)
      old = jnp.exp(peak - top)
      total = total * old + weights.sum(-1)
      out = out * old[..., None] + _product(
        'njhmc,njhck->njhmk', weights.astype(v.dtype), _at(v, j)
      )
      new = (top, total, out)
      return tuple(_put(x, i, y) for x, y in zip(state, new, strict=True)), None

    state, _ = lax.scan(add, state, _scanned(of_part))
  peak, total, out = state
  some = jnp.where(total > 0, total, 1.0)
  out = checkpoint_name(
    (out / some[..., None]).astype(q.dtype), attention_kernels.RESIDUALS
  )
  log_sum = checkpoint_name(peak + jnp.log(some), attention_kernels.RESIDUALS)
  return out, (q, blocks, window, out, log_sum)


def _backward(cap, pairs, residuals, g):
  """Gradients of queries, keys and values, summed in float32."""
  q, blocks, window, out, log_sum = residuals
  mean = (g.astype(jnp.float32) * out.astype(jnp.float32)).sum(-1)
  dq, found = jnp.zeros(q.shape, jnp.float32), []
  for (k, v, places), of_part in zip(blocks, pairs, strict=True):

    def add(sums, pair, k=k, v=v, places=places):
      (dq, dk, dv), (i, j) = sums, pair
      rows = k.shape[3]
      q_i, g_i = _at(q, i, rows), _at(g, i, rows)
      k_j, v_j = _at(k, j), _at(v, j)
      scores, seen = _scores(q_i, k_j, places, pair, (cap, window))
      log_sum_i, mean_i = _at(log_sum, i, rows), _at(mean, i, rows)
      weights = jnp.where(seen, jnp.exp(scores - log_sum_i[..., None]), 0.0)
      slope = _product('njhmk,njhck->njhmc', g_i, v_j) - mean_i[..., None]
      slope *= weights
      if cap is not None:
        slope *= jnp.where(seen, 1.0 - jnp.square(scores / cap), 0.0)
      slope, weights = slope.astype(q.dtype), weights.astype(v.dtype)
      of_q = _product('njhmc,njhck->njhmk', slope, k_j)
      of_k = _product('njhmc,njhmk->njhck', slope, q_i)
      of_v = _product('njhmc,njhmk->njhck', weights, g_i)
      return (_add(dq, i, of_q), _add(dk, j, of_k), _add(dv, j, of_v)), None

    zeros = (jnp.zeros(x.shape, jnp.float32) for x in (k, v))
    (dq, dk, dv), _ = lax.scan(add, (dq, *zeros), _scanned(of_part))
    found.append((dk.astype(k.dtype), dv.astype(v.dtype), None))
  return dq.astype(q.dtype), found, None


_attend_blocks.defvjp(_forward, _backward)


def _scanned(pairs):
  return tuple(jnp.asarray(x, jnp.int32) for x in np.array(pairs).T)


def _scores(q_NJHMK, k_NJHCK, places, pair, limits):
  """Scores [N, J, H, M, C], MASKED where not seen, and what is seen."""
  (place, query, first), (i, j), (cap, window) = places, pair, limits
  key_NHC, query_NHM = _at(place, j), _at(query, i)
  # Or what is seen, which depends on places only, is computed for all pairs
  # before a loop over microbatches, as an array of all queries and keys.
  q_NJHMK, key_NHC = lax.optimization_barrier((q_NJHMK, key_NHC))
  distance = query_NHM[..., None] - key_NHC[:, :, None]
  seen = distance >= 0
  if window is not None:
    seen &= distance < window
  if first is not None:
    seen &= key_NHC[:, :, None] >= _at(first, i)[..., None]
  scores = _product('njhmk,njhck->njhmc', q_NJHMK, k_NJHCK)
  if cap is not None:
    scores = cap * jnp.tanh(scores / cap)
  seen = jnp.broadcast_to(seen[:, None], scores.shape)
  return jnp.where(seen, scores, MASKED), seen


def _at(x: Array, index: Array, rows: int | None = None) -> Array:
  """A block; of [N, J, G, M, ...] with the G rows of a group in `rows`."""
  x = lax.dynamic_index_in_dim(x, index, keepdims=False)
  return x if rows is None else x.reshape(*x.shape[:2], rows, -1, *x.shape[4:])


def _put(x: Array, index: Array, block: Array) -> Array:
  block = block.reshape(x.shape[1:])
  return lax.dynamic_update_index_in_dim(x, block, index, 0)


def _add(x: Array, index: Array, block: Array) -> Array:
  return _put(x, index, _at(x, index) + block.reshape(x.shape[1:]))


def _product(equation: str, x: Array, y: Array) -> Array:
  return jnp.einsum(equation, x, y, preferred_element_type=jnp.float32)
