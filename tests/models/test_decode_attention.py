"""Kernels of decoding steps, interpreted, against plain products (E1)."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.models import decode_attention, kv_cache, presets
from rl_jax.models.decode_attention import Seen
from rl_jax.runtime.platform import Platform

GPU, TPU = Platform('cuda', (9, 0)), Platform('tpu')
kernels = pytest.mark.parametrize(
  'kernel', [decode_attention.on_gpu, decode_attention.on_tpu]
)
CFG = dataclasses.replace(
  presets.small(vocab_size=17, head_size=64),
  attention='splash',
  compute_dtype='bfloat16',
  platform=TPU,
)


def arrays(rows, heads, queries, places, layers=1, size=64):
  """Queries, keys and values."""
  rng = np.random.default_rng(rows + places)
  shape = (rows, layers, heads, places, size)
  q = rng.normal(size=(rows, heads, queries, size)) / 4
  return (
    jnp.asarray(x, jnp.float32)
    for x in (q, rng.normal(size=shape), rng.normal(size=shape))
  )


def ranges(rows, queries, places):
  """Queries that see from 1 to all places, in the ring."""
  rng = np.random.default_rng(rows)
  low = rng.integers(0, places, rows)
  high = low + rng.integers(1, places + 1, rows)
  later = rng.integers(0, 9, (rows, queries))  # as windows of queries are
  later[:, 0] = 0
  low_XM = np.minimum(low[:, None] + later, high[:, None] - 1)
  return Seen(jnp.asarray(low_XM), jnp.asarray(high))


def expected(q, k, v, seen, cap):
  """Logarithms of sums of exponentials, and the mean of values."""
  places = k.shape[2]
  low, high = seen.low_XM[..., None], seen.high_X[:, None, None]
  place = jnp.arange(places)[None, None]
  visible = (place >= low) & (place < high)
  visible |= (place + places >= low) & (place + places < high)
  scores = jnp.einsum('xjmk,xjck->xjmc', q, k, precision='highest')
  if cap is not None:
    scores = cap * jnp.tanh(scores / cap)
  scores = jnp.where(visible[:, None], scores, -jnp.inf)
  weights = jax.nn.softmax(scores, axis=-1)
  out = jnp.einsum('xjmc,xjck->xjmk', weights, v, precision='highest')
  return jax.nn.logsumexp(scores, axis=-1), out


@kernels
@pytest.mark.parametrize(
  ('rows', 'heads', 'queries', 'places', 'layers', 'cap'),
  [
    (5, 2, 6, 300, 1, None),  # the last block is not full
    (17, 1, 3, 128, 3, 20.0),  # the last block of rows is not full either
    (3, 1, 70, 40, 2, None),  # two tiles of queries
    (300, 1, 1, 130, 1, None),  # no program shares its row on GPU
  ],
)
def test_kernels_are_softmax_over_what_is_seen(
  kernel, rows, heads, queries, places, layers, cap
):
  """Ranges of rows are different, and some continue at the ring's start."""
  q, k, v = arrays(rows, heads, queries, places, layers)
  seen, number = ranges(rows, queries, places), layers - 1
  run = jax.jit(functools.partial(kernel, cap=cap, interpret=True))
  part = run(q, k, v, jnp.int32(number), *seen)
  total, out = expected(q, k[:, number], v[:, number], seen, cap)
  found = (part.peak_XJM1 + jnp.log(part.total_XJM1))[..., 0]
  np.testing.assert_allclose(found, total, rtol=1e-5, atol=1e-5)
  np.testing.assert_allclose(
    part.out_XJMK / part.total_XJM1, out, rtol=1e-5, atol=1e-5
  )


@kernels
def test_blocks_that_no_row_sees_are_not_read(kernel):
  """The places outside of the block hold NaN."""
  q, k, v = arrays(4, 1, 2, 640)
  low, high = 130, 250  # within the second block of 128 places
  outside = (jnp.arange(640) < 128) | (jnp.arange(640) >= 256)
  k, v = (
    jnp.where(outside[None, None, None, :, None], jnp.nan, x) for x in (k, v)
  )
  seen = Seen(jnp.full((4, 2), low), jnp.full(4, high))
  run = jax.jit(functools.partial(kernel, interpret=True))
  assert all(np.isfinite(x).all() for x in run(q, k, v, jnp.int32(0), *seen))


@kernels
def test_a_query_that_sees_nothing_has_no_mass(kernel):
  """Such is a query whose window has left the prompt; it merges with others."""
  q, k, v = arrays(2, 1, 2, 64)
  seen = Seen(jnp.array([[64, 10], [64, 64]]), jnp.array([64, 64]))
  run = jax.jit(functools.partial(kernel, interpret=True))
  part = run(q, k, v, jnp.int32(0), *seen)
  mass = np.asarray(part.total_XJM1[:, 0, :, 0])
  np.testing.assert_array_equal(mass > 0, [[False, True], [False, False]])
  assert np.isfinite(part.out_XJMK).all()


def test_places_seen_are_those_of_the_masks():
  """Steps lie in a ring, and rows have a context or none."""
  zeros = jnp.zeros((1, 3, 1, 2, 12))
  fields = {
    'prompt': None,
    'k_BJKT': ((zeros,),),
    'v_BJTK': ((jnp.swapaxes(zeros, -1, -2),),),
    'rotations': (),
  }
  context_B = jnp.array([0, 2, 0])
  caches = (
    kv_cache.Cache(**fields),
    kv_cache.RowCache(**fields),
    kv_cache.RowCache(**fields, context_B=context_B),
  )
  step_B = jnp.array([4, 9, -1])  # the last one has ended
  for cache in caches:
    for clock in (11, 12, 17, 23):
      [(_, _, seen_B1T)] = cache.step(jnp.int32(clock), step_B)
      low_B, high_B = cache.seen(jnp.int32(clock), step_B)
      place = np.arange(24)[None]
      inside = (place >= low_B[:, None]) & (place < high_B[:, None])
      inside = inside[:, :12] | inside[:, 12:]
      np.testing.assert_array_equal(seen_B1T[:, 0], inside)


@pytest.mark.parametrize(
  ('heads', 'queries', 'tile'), [(2, 6, 6), (2, 448, 64), (32, 48, 24)]
)
def test_tiles_of_queries_fit_into_fast_memory(heads, queries, tile):
  """Tiles are all queries, or a multiple of eight."""
  assert decode_attention._tile(heads, queries, 128) == tile


@pytest.mark.parametrize(
  ('fields', 'runs'),
  [
    ({}, True),
    ({'platform': GPU, 'attention': 'cudnn'}, True),
    ({'platform': Platform('cuda', (7, 5))}, False),
    ({'platform': Platform('rocm')}, False),
    ({'platform': Platform()}, False),
    ({'attention': 'plain'}, False),
    ({'compute_dtype': 'float32'}, False),
    ({'compute_dtype': 'float16'}, False),
    ({'head_size': 80}, False),
    ({'head_size': 256, 'num_heads': 16, 'num_kv_heads': 16}, True),
    ({'head_size': 256, 'num_heads': 32, 'num_kv_heads': 32}, False),
  ],
)
def test_kernels_run_where_they_were_compiled(fields, runs):
  """Everything else attends by plain products."""
  assert decode_attention.runs(dataclasses.replace(CFG, **fields)) == runs
