"""Attention of a decoding step by kernels that read only what rows see.

Plain products read every place of the cache, written or not. The kernels walk
over blocks of keys, from the first one that a row sees to the last:

  places    | 0 .. 127 | 128 .. 255 | 256 .. 383 |     blocks of a row
  row sees        [ 40 ............ 200 ]              two blocks are read

Prompts and responses are two calls, as the rows of a group share their prompt:
its queries are one matrix. Softmax is merged by maxima and sums.
"""

import functools
from typing import Any, NamedTuple

import jax
from jax import lax
from jax.experimental import pallas as pl
import jax.numpy as jnp

from rl_jax.models import attention
from rl_jax.models.attention_blocks import MASKED
from rl_jax.runtime import layout
from rl_jax.types import Array

BLOCK = 128  # keys
# Queries of one matrix, at most; fewer are padded to what a product takes.
QUERIES = 64
FEWEST_QUERIES = 16
# Of fast memory that blocks take on TPU, half of what a kernel may have.
VMEM_BYTES = 8 * 2**20
MOST_ROWS = 16  # in one block on TPU
LEAST_TILE = 8  # queries of a block on TPU
# On GPU rows are split among so many programs if there are few of them.
LEAST_PROGRAMS = 256
MOST_SPLITS = 8
AMPERE = (8, 0)
HEAD_SIZES = (64, 128, 256)  # with which both kernels have been compiled


class Seen(NamedTuple):
  """The places of the keys that queries see, as in a ring of C places.

  Query m of row x sees places low, ..., high - 1, modulo C; nothing if low is
  not below high. 0 <= low, 0 < high <= 2 C, and high - low is at most C.
  """

  low_XM: Array
  high_X: Array


class Part(NamedTuple):
  """A softmax over some of the keys, not yet divided; float32."""

  peak_XJM1: Array
  total_XJM1: Array
  out_XJMK: Array


def runs(cfg: Any) -> bool:
  """Returns whether a kernel attends in decoding steps of this model.

  Where training has a kernel, in bfloat16, on TPU and on GPU from Ampere on.
  Heads that a mesh splits unevenly have none, nor has a row whose heads do not
  fit into the fast memory of a TPU.
  """
  if cfg.attention == 'plain' or cfg.compute_dtype != 'bfloat16':
    return False
  parts = layout.parts(cfg.num_heads, 'heads')
  if layout.parts(cfg.num_kv_heads, 'kv_heads') != parts:
    return False
  if cfg.head_size not in HEAD_SIZES:
    return False
  if cfg.platform.name == 'tpu':
    heads = cfg.num_kv_heads // parts
    return _row_bytes(heads, LEAST_TILE, cfg.head_size) <= VMEM_BYTES
  return cfg.platform.name == 'cuda' and cfg.platform.capability >= AMPERE


def attend(
  cfg: Any,
  q_BJRK: Array,
  prompt: tuple,
  own: tuple,
  number: Array | None,
  places: tuple[Array, Array] | None,
  limits: attention.Limits,
  times: tuple[tuple[Array, Array], Array],
) -> Array:
  """attention.attend_response of one token of each row, [B, J, R, K].

  prompt: keys and values [N, (L,) J, ...] and mask [N, P], left-padded. own:
  keys and values [B, (L,) J, ...]. number: see decoding.through_layers. times:
  (low, high), the places of responses that rows see, and the number of tokens
  of their responses that come before.
  """
  (pk, pv, mask_NP), (k, v) = prompt, own
  (low_B, high_B), step_B = times
  B, J, R, K = q_BJRK.shape
  N, P = mask_NP.shape
  G = (B if places is None else places[1].shape[0]) // N
  by_group, by_row = attention.movers(places, (N, G, J, R))
  start_N = P - mask_NP.astype(jnp.int32).sum(axis=1)
  low_NM = jnp.broadcast_to(start_N[:, None], (N, G * R))
  if limits.window is not None:
    # Prompts end in the last column: that of place c is P + step - c before.
    least_BJR = jnp.broadcast_to(
      (step_B + P - limits.window + 1)[:, None, None], (B, J, R)
    )
    low_NM = jnp.clip(by_group(least_BJR)[:, 0], low_NM, P)
    low_B = jnp.maximum(low_B, high_B - limits.window)
  call = functools.partial(_part, cfg.platform, limits.cap, number)
  of_prompt = call(
    by_group(q_BJRK), pk, pv, Seen(low_NM, jnp.full(N, P, jnp.int32))
  )
  seen = Seen(jnp.broadcast_to(low_B[:, None], (B, R)), high_B)
  of_own = call(q_BJRK, k, v, seen)
  return _merged([Part(*map(by_row, of_prompt)), of_own]).astype(q_BJRK.dtype)


def _merged(parts: list[Part]) -> Array:
  """The softmax over all of the keys; 0 for a query that sees none."""
  peak = functools.reduce(jnp.maximum, (part.peak_XJM1 for part in parts))
  shares = [jnp.exp(part.peak_XJM1 - peak) for part in parts]
  total = sum(
    x * part.total_XJM1 for x, part in zip(shares, parts, strict=True)
  )
  out = sum(x * part.out_XJMK for x, part in zip(shares, parts, strict=True))
  return out / jnp.where(total > 0, total, 1.0)


def _part(platform, cap, number, q_XJMK, keys, values, seen) -> Part:
  """The softmax over the places seen, of the heads that each device has."""
  if number is None:
    keys, values, number = keys[:, None], values[:, None], jnp.int32(0)
  # Keys lie as values do: a token is written in one piece.
  keys = jnp.swapaxes(keys, -1, -2)
  kernel = KERNELS[platform.name]
  heads = (None, 'kv_heads', None, None)
  layers = (None, None, 'kv_heads', None, None)
  axes = [heads, layers, layers, (), (None, None), (None,)]
  found: Any = layout.on_parts(
    functools.partial(kernel, cap=cap),
    [q_XJMK, keys, values, number, seen.low_XM, seen.high_X],
    axes,
  )
  return Part(*found)


def _blocks(seen: Seen, places: int, block: int) -> tuple[Array, Array]:
  """The first block that each row sees, and the one after the last, [X].

  Blocks are counted on beyond the last one of the ring.
  """
  count = -(-places // block)

  def block_of(place_X):
    beyond_X = count + (place_X - places) // block
    return jnp.where(place_X < places, place_X // block, beyond_X)

  low_X, high_X = seen.low_XM.min(axis=1), seen.high_X
  first_X = block_of(low_X)
  return first_X, jnp.where(low_X < high_X, block_of(high_X - 1) + 1, first_X)


def _added(part, qkv, seen, real, cap):
  """The softmax extended by a block: q [.., M, K], and k and v [.., C, K].

  seen: [.., M, C]. real: [.., C, 1], the places that exist; others hold
  anything.
  """
  (peak, total, out), (q, k, v) = part, qkv
  batch = tuple(range(q.ndim - 2))
  last = q.ndim - 1
  scores = lax.dot_general(
    q,
    k,
    (((last,), (last,)), (batch, batch)),
    preferred_element_type=jnp.float32,
  )
  scores = jnp.where(seen, attention.capped(scores, cap), MASKED)
  top = jnp.maximum(peak, scores.max(axis=-1, keepdims=True))
  weights = jnp.where(seen, jnp.exp(scores - top), 0.0)
  old = jnp.exp(peak - top)
  v = jnp.where(real, v, jnp.zeros_like(v))
  more = lax.dot_general(
    weights.astype(v.dtype),
    v,
    (((last,), (last - 1,)), (batch, batch)),
    preferred_element_type=jnp.float32,
  )
  total = total * old + weights.sum(axis=-1, keepdims=True)
  return top, total, out * old + more


def on_gpu(
  q_XJMK: Array,
  k_XLJCK: Array,
  v_XLJCK: Array,
  number: Array,
  low_XM: Array,
  high_X: Array,
  *,
  cap: float | None = None,
  interpret: bool = False,
) -> Part:
  """The kernel for GPUs, in Triton: a program walks over the blocks of a row.

  Where rows are few, several programs share the blocks of each.
  """
  from jax.experimental.pallas import triton

  (X, J, M, K), (_, L, _, C, _) = q_XJMK.shape, k_XLJCK.shape
  block = BLOCK // 2
  queries = min(max(pl.next_power_of_2(M), FEWEST_QUERIES), QUERIES)
  tiles = -(-M // queries)
  few = -(-LEAST_PROGRAMS // (X * J * tiles))
  splits = min(few, MOST_SPLITS, -(-C // block))
  first_X, last_X = _blocks(Seen(low_XM, high_X), C, block)
  share_X = pl.cdiv(last_X - first_X, splits)
  keys = pl.BlockSpec((None, L, None, C, K), lambda x, j, m, s: (x, 0, j, 0, 0))
  results = [(splits, X, J, M, width) for width in (1, 1, K)]
  found = pl.pallas_call(
    functools.partial(_gpu_kernel, block=block, queries=M, cap=cap),
    grid=(X, J, tiles, splits),
    in_specs=[
      pl.BlockSpec((None, None, queries, K), lambda x, j, m, s: (x, j, m, 0)),
      keys,
      keys,
      pl.BlockSpec((), lambda x, j, m, s: ()),
      pl.BlockSpec((None, queries), lambda x, j, m, s: (x, m)),
      pl.BlockSpec((None, 4), lambda x, j, m, s: (x, 0)),
    ],
    out_specs=[
      pl.BlockSpec(
        (None, None, None, queries, shape[-1]),
        lambda x, j, m, s: (s, x, j, m, 0),
      )
      for shape in results
    ],
    out_shape=[jax.ShapeDtypeStruct(shape, jnp.float32) for shape in results],
    compiler_params=triton.CompilerParams(num_warps=4, num_stages=2),
    interpret=interpret,
    name='decode_attention',
  )(
    q_XJMK,
    k_XLJCK,
    v_XLJCK,
    number,
    low_XM,
    jnp.stack([high_X, first_X, last_X, share_X], axis=1),
  )
  return _joined(*found)


def _joined(peak_SXJM1: Array, total_SXJM1: Array, out_SXJMK: Array) -> Part:
  """The softmax over the keys of all programs that shared a row."""
  if len(peak_SXJM1) == 1:
    return Part(peak_SXJM1[0], total_SXJM1[0], out_SXJMK[0])
  peak = peak_SXJM1.max(axis=0, keepdims=True)
  shares = jnp.exp(peak_SXJM1 - peak)
  total, out = ((shares * x).sum(axis=0) for x in (total_SXJM1, out_SXJMK))
  return Part(peak[0], total, out)


def _gpu_kernel(*refs, block, queries, cap):
  """The queries of one tile, the keys of one head and share of blocks."""
  from jax.experimental.pallas import triton

  q_ref, k_ref, v_ref, number_ref, low_ref, ranges_ref, *results = refs
  high, first, last, share = (ranges_ref[i] for i in range(4))
  (tile, size), places = q_ref.shape, k_ref.shape[1]
  count = -(-places // block)
  real_M = jnp.arange(tile) < queries - tile * pl.program_id(2)
  real_M1 = real_M[:, None]
  every, number = pl.ds(0, tile), number_ref[()]
  q = triton.load(q_ref.at[every, :], mask=real_M1, other=0.0)
  low_M = triton.load(low_ref.at[every], mask=real_M, other=0)
  start = first + pl.program_id(3) * share

  def body(at, part):
    begin = lax.rem(at, count) * block
    place_C = begin + jnp.arange(block)
    real_C1 = (place_C < places)[:, None]
    ring_1C = (place_C + lax.div(at, count) * places)[None]
    seen = (ring_1C >= low_M[:, None]) & (ring_1C < high)
    seen &= (place_C < places)[None]
    k, v = (
      triton.load(
        ref.at[number, pl.ds(begin, block), :], mask=real_C1, other=0.0
      )
      for ref in (k_ref, v_ref)
    )
    return _added(part, (q, k, v), seen, real_C1, cap)

  nothing = (
    jnp.full((tile, 1), MASKED, jnp.float32),
    jnp.zeros((tile, 1), jnp.float32),
    jnp.zeros((tile, size), jnp.float32),
  )
  part = lax.fori_loop(start, jnp.minimum(start + share, last), body, nothing)
  for ref, value in zip(results, part, strict=True):
    triton.store(ref.at[every, :], value, mask=real_M1)


def on_tpu(
  q_XJMK: Array,
  k_XLJCK: Array,
  v_XLJCK: Array,
  number: Array,
  low_XM: Array,
  high_X: Array,
  *,
  cap: float | None = None,
  interpret: bool = False,
) -> Part:
  """The kernel for TPUs, in Mosaic: a program takes a block of several rows.

  The last axis of the grid has as many steps as some block of rows has blocks
  of keys; the others compute and fetch nothing in steps that they do not need.
  """
  from jax.experimental.pallas import tpu

  (X, J, M, K), C = q_XJMK.shape, k_XLJCK.shape[3]
  block, queries = min(BLOCK, C), _tile(J, M, K)
  rows = max(1, min(VMEM_BYTES // _row_bytes(J, queries, K), MOST_ROWS, X))
  first_R, last_R = _of_rows(*_blocks(Seen(low_XM, high_X), C, block), rows)
  steps = jnp.maximum((last_R - first_R).max(), 1)

  def keys_at(x, m, i, number, first, last):
    del m
    at = jnp.minimum(first[x] + i, jnp.maximum(last[x] - 1, first[x]))
    return x, number[0], 0, lax.rem(at, -(-C // block)), 0

  def of_queries(heads, width):
    shape = (rows, heads, queries, width)
    return pl.BlockSpec(shape, lambda x, m, i, *_: (x, 0, m, 0))

  low, high = low_XM[:, None, :, None], high_X[:, None, None, None]
  keys = pl.BlockSpec((rows, None, J, block, K), keys_at)
  shapes = [(X, J, M, width) for width in (1, 1, K)]
  found = pl.pallas_call(
    functools.partial(_tpu_kernel, places=C, cap=cap),
    grid_spec=tpu.PrefetchScalarGridSpec(
      num_scalar_prefetch=3,
      grid=(pl.cdiv(X, rows), pl.cdiv(M, queries), steps),
      in_specs=[
        of_queries(J, K),
        keys,
        keys,
        of_queries(1, 1),
        pl.BlockSpec((rows, 1, 1, 1), lambda x, m, i, *_: (x, 0, 0, 0)),
      ],
      out_specs=[of_queries(J, shape[-1]) for shape in shapes],
    ),
    out_shape=[jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes],
    compiler_params=tpu.CompilerParams(
      dimension_semantics=('parallel', 'parallel', 'arbitrary')
    ),
    interpret=interpret,
    name='decode_attention',
  )(number[None], first_R, last_R, q_XJMK, k_XLJCK, v_XLJCK, low, high)
  return Part(*found)


def _of_rows(first_X: Array, last_X: Array, rows: int) -> tuple[Array, Array]:
  """Returns the least and the largest of so many rows each, of _blocks."""
  end = (0, -first_X.shape[0] % rows)
  first_XR, last_XR = (
    jnp.pad(x, end, mode='edge').reshape(-1, rows) for x in (first_X, last_X)
  )
  return first_XR.min(axis=1), last_XR.max(axis=1)


def _tile(heads: int, queries: int, head_size: int) -> int:
  """Returns the most queries of a row whose heads fit into fast memory."""
  most = min(queries, QUERIES)
  while most > LEAST_TILE and _row_bytes(heads, most, head_size) > VMEM_BYTES:
    most = max(LEAST_TILE, most // 2 // LEAST_TILE * LEAST_TILE)
  return most


def _row_bytes(heads: int, queries: int, head_size: int) -> int:
  """Returns the bytes of a row's blocks, each of which is there twice."""
  cached = 4 * BLOCK * head_size * 2  # keys and values
  lanes = max(head_size, 128)
  states = 4 * queries * (7 * lanes + 3 * BLOCK)  # and what is computed of them
  return heads * (cached + states)


def _tpu_kernel(number_ref, first_ref, last_ref, *refs, places, cap):
  """The rows of a block, all of their heads, one block of keys."""
  del number_ref  # it is in the place of the block
  *read, low_ref, high_ref, peak_ref, total_ref, out_ref = refs
  results = (peak_ref, total_ref, out_ref)
  rows, heads, queries, _ = out_ref.shape
  block = read[1].shape[2]
  count = -(-places // block)
  row = pl.program_id(0)
  at = first_ref[row] + pl.program_id(2)

  @pl.when(pl.program_id(2) == 0)
  def _():
    for ref, value in zip(results, (MASKED, 0.0, 0.0), strict=True):
      ref[...] = jnp.full(ref.shape, value, ref.dtype)

  def places_on(axis):
    shape = tuple(block if i == axis else 1 for i in range(4))
    number = lax.broadcasted_iota(jnp.int32, shape, axis)
    return lax.rem(at, count) * block + number

  def by_head(x):
    return x.reshape(rows * heads, *x.shape[2:])

  @pl.when(at < last_ref[row])
  def _():
    place = places_on(3)
    ring = place + lax.div(at, count) * places
    seen = (ring >= low_ref[...]) & (ring < high_ref[...]) & (place < places)
    seen = jnp.broadcast_to(seen, (rows, heads, queries, block))
    part = _added(
      tuple(by_head(ref[...]) for ref in results),
      tuple(by_head(ref[...]) for ref in read),
      by_head(seen),
      (places_on(2) < places)[0],
      cap,
    )
    for ref, value in zip(results, part, strict=True):
      ref[...] = value.reshape(ref.shape)


KERNELS = {'cuda': on_gpu, 'tpu': on_tpu}
