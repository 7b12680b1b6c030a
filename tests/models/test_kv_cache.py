"""The places that a step writes, and the tokens and blocks that rows read."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.models import attention, kv_cache, presets, rope
from rl_jax.runtime.platform import Platform

CFG = presets.small(
  vocab_size=7, num_layers=1, width=8, num_heads=4, head_size=4, mlp_size=8
)
J, K, P = 2, 4, 3


def prompt_cache(num_prompts=1):
  """Random keys and values of prompts, the first one padded by one token."""
  rng = np.random.default_rng(0)
  kv = rng.normal(size=(2, num_prompts, J, P, K)).astype(np.float32)
  mask_NP = np.ones((num_prompts, P), np.float32)
  mask_NP[0, 0] = 0
  return kv_cache.PromptCache(
    k_NJKP=(jnp.asarray(kv[0].swapaxes(-1, -2)),),
    v_NJPK=(jnp.asarray(kv[1]),),
    mask_NP=jnp.asarray(mask_NP),
  )


@pytest.mark.parametrize(
  ('tokens', 'expected'),
  [(62, (1, 62)), (63, (2, 32)), (128, (2, 64)), (1, (1, 1))],
)
def test_blocks_hold_at_least_32_tokens(tokens, expected):
  """If there are two, each has half of the columns."""
  assert kv_cache.blocks_of(tokens, Platform()) == expected


def test_on_an_accelerator_there_is_one_block():
  """There each layer would need a decision of the host."""
  assert kv_cache.blocks_of(127, Platform('tpu')) == (1, 127)


@pytest.mark.parametrize(
  ('clock', 'place', 'first_row', 'second_row'),
  [
    # Places 0 1 2 | 3 4 5.
    (1, 1, ('110', '000'), ('110', '000')),
    (4, 4, ('111', '110'), ('001', '110')),
    (5, 5, ('011', '111'), ('000', '111')),
    (7, 1, ('110', '111'), ('110', '001')),
  ],
)
def test_the_blocks_are_one_ring(
  monkeypatch, clock, place, first_row, second_row
):
  """By hand: rows at their fifth and third token, room for six, E0."""
  monkeypatch.setattr(kv_cache, 'LEAST_BLOCK', 1)
  cache = kv_cache.extend(CFG, prompt_cache(), 2, 5)
  assert [k.shape for k in cache.k_BJKT[0]] == [(2, J, K, 3)] * 2
  assert [v.shape for v in cache.v_BJTK[0]] == [(2, J, 3, K)] * 2
  steps_B = jnp.asarray([min(clock, 4), min(clock, 2)])
  found = cache.step(jnp.int32(clock), steps_B)
  written = [(int(column), bool(here)) for column, here, _ in found]
  assert written == [(place % 3, place < 3), (place % 3, place >= 3)]
  for (*_, seen_B1T), *rows in zip(found, first_row, second_row, strict=True):
    for row, expected in enumerate(rows):
      text = ''.join(str(int(seen)) for seen in seen_B1T[row, 0])
      assert text == expected


@pytest.mark.parametrize(
  ('tokens', 'expected'),
  [(124, 124), (125, 32), (128, 32), (512, 128), (10, 10)],
)
def test_a_small_cache_has_a_quarter_of_the_places(tokens, expected):
  """If these are at least 32 columns, else all."""
  assert kv_cache.first_places(tokens) == expected


@pytest.mark.parametrize('least', [3, 32], ids=['two blocks', 'one block'])
def test_a_cache_grows(monkeypatch, least):
  """E0: tokens keep their columns, the rest is 0, rotations are complete."""
  monkeypatch.setattr(kv_cache, 'LEAST_BLOCK', least)
  small = kv_cache.extend(CFG, prompt_cache(), 2, 8, places=2)
  assert small.places == 2 and small.k_BJKT[0][0].shape == (2, J, K, 2)
  k, v = np.arange(2.0 * J * K * 2), -np.arange(2.0 * J * K * 2)
  k, v = k.reshape(2, J, K, 2), v.reshape(2, J, 2, K)
  small = small.replace(
    k_BJKT=((jnp.asarray(k),),), v_BJTK=((jnp.asarray(v),),)
  )
  found = small.grown(8, Platform())
  full = kv_cache.extend(CFG, prompt_cache(), 2, 8)
  assert jax.tree.map(jnp.shape, found) == jax.tree.map(jnp.shape, full)
  keys = np.concatenate(found.k_BJKT[0], axis=3)
  values = np.concatenate(found.v_BJTK[0], axis=2)
  np.testing.assert_array_equal(keys, np.pad(k, [(0, 0)] * 3 + [(0, 6)]))
  np.testing.assert_array_equal(
    values, np.pad(v, [(0, 0), (0, 0), (0, 6), (0, 0)])
  )
  jax.tree.map(np.testing.assert_array_equal, found.rotations, full.rotations)


@pytest.mark.parametrize('name', ['cpu', 'cuda'])
def test_rows_that_are_taken_array_by_array_are_the_same(name):
  """E0: keys and values of three layers, and what rows have forgotten.

  On GPU each array but the first waits for the one before.
  """
  cache = kv_cache.for_turns(CFG, prompt_cache(), 4, 5)
  rng = np.random.default_rng(1)

  def drawn(x):
    return tuple(
      (jnp.asarray(rng.normal(size=x.shape), x.dtype),) for _ in range(3)
    )

  keys, values = drawn(cache.k_BJKT[0][0]), drawn(cache.v_BJTK[0][0])
  context_B = jnp.asarray([0, 1, 2, 3])
  cache = cache.replace(k_BJKT=keys, v_BJTK=values, context_B=context_B)
  slot_W = jnp.asarray([3, 1])
  cfg = dataclasses.replace(CFG, platform=Platform(name))

  def take(cache, slot_W):
    return cache.take(slot_W, cfg)

  found = jax.jit(take)(cache, slot_W)
  for (old,), (new,) in zip(
    (*keys, *values), (*found.k_BJKT, *found.v_BJTK), strict=True
  ):
    np.testing.assert_array_equal(new, old[np.asarray([3, 1])])
  np.testing.assert_array_equal(found.context_B, [3, 1])
  text = str(jax.make_jaxpr(take)(cache, slot_W))
  assert text.count('optimization_barrier') == 6 * (name == 'cuda')


@pytest.mark.parametrize('at_rest', [False, True])
@pytest.mark.parametrize('size', [64, 128])
def test_rows_are_copied_one_after_another_on_tpu(size, at_rest):
  """E0, without a gather, where a kernel reads them or they are at rest.

  Where all rows are taken a gather has no pieces.
  """
  kernel = dataclasses.replace(
    CFG,
    head_size=size,
    attention='splash',
    compute_dtype='bfloat16',
    platform=Platform('tpu'),
  )
  plain = dataclasses.replace(kernel, attention='plain')
  rng = np.random.default_rng(1)
  keys = jnp.asarray(rng.normal(size=(4, 3, J, size, 5)), jnp.float32)
  values = jnp.asarray(rng.normal(size=(4, 3, J, 5, size)), jnp.float32)

  for cfg, index, gathers in (
    (kernel, [3, 1], 0),
    (kernel, [0, 3, 3, 1], 2),
    (plain, [3, 1], 0 if at_rest else 2),
  ):
    index_W = jnp.asarray(index)

    def take(index_W, cfg=cfg):
      return kv_cache.taken(((keys,),), ((values,),), index_W, cfg, at_rest)

    ((found_keys,),), ((found_values,),) = jax.jit(take)(index_W)
    np.testing.assert_array_equal(found_keys, keys[index_W])
    np.testing.assert_array_equal(found_values, values[index_W])
    assert str(jax.make_jaxpr(take)(index_W)).count('gather[') == gathers


def test_ages_of_columns_count_tokens_back(monkeypatch):
  """By hand: where rows are at their tokens 4 and 2, and on the ring."""
  monkeypatch.setattr(kv_cache, 'LEAST_BLOCK', 3)
  step_B = jnp.asarray([4, 2])
  rows = kv_cache.for_turns(CFG, prompt_cache(), 2, 6)
  first, second = rows.ages(jnp.int32(9), step_B)
  np.testing.assert_array_equal(first[:, 0], [[4, 3, 2], [2, 1, 0]])
  np.testing.assert_array_equal(second[:, 0], [[1, 0, -1], [-1, -2, -3]])
  ring = kv_cache.extend(CFG, prompt_cache(), 2, 6)
  first, second = ring.ages(jnp.int32(7), step_B)
  # The token of step 7 is in place 1 of six, that of step 2 in place 2.
  np.testing.assert_array_equal(first[0, 0], [1, 0, 5])
  np.testing.assert_array_equal(second[0, 0], [4, 3, 2])


def test_one_block_is_always_written():
  """The program then has no conditional, as on accelerators."""
  cache = kv_cache.extend(CFG, prompt_cache(), 2, 5)
  ((column, here, _),) = cache.step(jnp.int32(7), jnp.asarray([4, 2]))
  assert int(column) == 2 and here is None


@pytest.mark.parametrize('here', [True, None, False])
def test_what_is_put_here_or_in_another_block(here):
  """E0: writes one column, or none; here = None: there is one block."""
  x, new = np.zeros((2, 3, 4)), np.arange(1.0, 7).reshape(2, 3)
  found = kv_cache.put(jnp.asarray(x), jnp.asarray(new), 1, here, axis=2)
  if here is not False:
    x[:, :, 1] = new
  np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize('axis', [2, 3])
def test_what_is_put_into_one_of_the_stacked_layers(axis):
  """E0: a column of each row, and none of a row whose column is too large."""
  rng = np.random.default_rng(axis)
  x = rng.normal(size=(3, 4, J, 5, 5)).astype(np.float32)
  new = rng.normal(size=(3, J, 5))
  column = np.array([4, 0, 5])
  found = kv_cache.put(
    *map(jnp.asarray, (x, new, column)), None, axis, jnp.int32(2)
  )
  wanted = (
    jnp.asarray(x)
    .at[:, 2]
    .set(kv_cache.put(*map(jnp.asarray, (x[:, 2], new, column)), None, axis))
  )
  np.testing.assert_array_equal(found, wanted)
  assert (np.asarray(found) != x).sum() == 2 * J * 5


@pytest.mark.parametrize('axis', [2, 3])
def test_tokens_are_put_into_one_of_the_stacked_layers(axis):
  """E0: the columns that a scatter into separate layers writes."""
  rng = np.random.default_rng(axis)
  x = rng.normal(size=(3, 4, J, 5, 5)).astype(np.float32)
  new = rng.normal(size=(3, 2, J, 5)).astype(np.float32)
  column = np.array([[3, 4], [0, 5], [5, 5]])
  found = kv_cache.put_tokens(
    *map(jnp.asarray, (x, new, column)), axis, jnp.int32(2)
  )
  apart = kv_cache.put_tokens(
    *map(jnp.asarray, (x[:, 2], new, column)), axis, None
  )
  np.testing.assert_array_equal(found, jnp.asarray(x).at[:, 2].set(apart))
  assert (np.asarray(found) != x).sum() == 3 * J * 5


def test_rotations_are_those_of_all_positions():
  """E0: of prompt and response."""
  cache = kv_cache.extend(CFG, prompt_cache(), 2, 5)
  expected = rope.tables(CFG, jnp.arange(P + 5))
  for found, table in zip(cache.rotations, expected, strict=True):
    np.testing.assert_array_equal(found, table)


def responses(places):
  """Queries, keys, values and what two rows of each of two prompts see."""
  rng = np.random.default_rng(1)
  q = rng.normal(size=(4, 1, J, 2, K))
  k = rng.normal(size=(4, J, K, places))
  v = rng.normal(size=(4, J, places, K))
  seen = np.arange(places) < np.array([[2], [6], [3], [5]])
  arrays = [jnp.asarray(x, jnp.float32) for x in (q, k, v)]
  return *arrays, jnp.asarray(seen)[:, None]


def attend(q, *own, later=()):
  """Attention to the prompts and to these blocks of own keys."""
  cache = prompt_cache(2)
  prompt = (cache.k_NJKP[0], cache.v_NJPK[0], cache.mask_NP)
  return attention.attend_response(q, prompt, own, later=later)


def blocks(k, v, seen, edges):
  """The arrays between these columns."""
  return [
    (k[..., a:b], v[:, :, a:b], seen[..., a:b])
    for a, b in zip(edges, edges[1:], strict=False)
  ]


@pytest.mark.parametrize('edges', [(0, 4, 8), (0, 1, 8), (0, 2, 4, 8)])
def test_blocks_are_merged_into_one_softmax(edges):
  """E1, with rows for which a whole block is masked."""
  q, k, v, seen = responses(8)
  first, *later = blocks(k, v, seen, edges)
  np.testing.assert_allclose(
    attend(q, *first, later=later), attend(q, k, v, seen), rtol=1e-5, atol=1e-6
  )


def test_a_block_that_no_row_sees_is_not_read():
  """E0: the values in that block cannot change the result."""
  q, k, v, seen = responses(8)
  first, later = blocks(k, v, seen, (0, 6, 8))
  assert not later[-1].any()
  later = (*(jnp.full_like(x, jnp.nan) for x in later[:2]), later[2])
  np.testing.assert_array_equal(
    attend(q, *first, later=[later]), attend(q, *first)
  )
