"""Rows get blocks of a shared cache, or wait."""

import types

import chex
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.models import block_pool, kv_cache, presets, rope
from rl_jax.runtime.platform import Platform

FREE = block_pool.FREE


def make(monkeypatch, max_tokens=4, cache_tokens=6):
  """Three blocks of two tokens, of which a whole response takes two."""
  monkeypatch.setattr(block_pool, 'BLOCK', 2)
  monkeypatch.setattr(rope, 'tables', lambda *_: ())
  prompt = kv_cache.PromptCache(
    k_NJKP=(jnp.zeros((1, 1, 2, 3)),),
    v_NJPK=(jnp.zeros((1, 1, 3, 2)),),
    mask_NP=jnp.ones((1, 3)),
  )
  config = types.SimpleNamespace()
  return block_pool.make_pool(config, prompt, max_tokens, cache_tokens)


def test_rows_wait_so_that_the_first_can_end(monkeypatch):
  """By hand; the row with most tokens has blocks kept for it."""
  pool, going = make(monkeypatch), jnp.ones(3, bool)
  # Slot 0 takes one of the two that are kept for it, slot 1 gets the third.
  pool, ready = pool.assigned(going, jnp.asarray([0, 0, 0]))
  assert pool.owner_M.tolist() == [1, 0, FREE] and ready.tolist() == [1, 1, 0]
  # Within a block nothing is needed.
  same, ready = pool.assigned(going, jnp.asarray([1, 1, 0]))
  assert same.owner_M.tolist() == [1, 0, FREE] and ready.tolist() == [1, 1, 0]
  pool, ready = pool.assigned(going, jnp.asarray([2, 2, 0]))
  assert pool.owner_M.tolist() == [1, 0, 0] and ready.tolist() == [1, 0, 0]
  assert pool.first_M.tolist() == [0, 0, 2]
  # Slot 0 ends: slot 1 is now the one with most tokens.
  going = jnp.asarray([False, True, True])
  pool = pool.released(going)
  assert pool.owner_M.tolist() == [1, FREE, FREE]
  pool, ready = pool.assigned(going, jnp.asarray([3, 2, 0]))
  assert pool.owner_M.tolist() == [1, 2, 1] and ready.tolist() == [0, 1, 1]
  # Only slot 1 can fill two blocks; E0 if they are taken layer by layer.
  whole, slot_W = pool, jnp.asarray([1])
  pool = whole.take(slot_W, presets.small())
  gpu = presets.small(platform=Platform('cuda'))
  chex.assert_trees_all_equal(whole.take(slot_W, gpu), pool)
  assert pool.owner_M.tolist() == [0, 0] and pool.first_M.tolist() == [0, 2]
  assert [x.shape[0] for x in (*pool.k_BJKT[0], *pool.v_BJTK[0])] == [2, 2]


def test_where_tokens_are_written_and_which_are_seen(monkeypatch):
  """By hand: slot 0 is at token 3, slot 1 waits for a block for its token 2."""
  pool = make(monkeypatch).replace(
    owner_M=jnp.asarray([1, 0, 0]), first_M=jnp.asarray([0, 0, 2])
  )
  at = pool.step(jnp.int32(9), jnp.asarray([3, 2]))
  assert at.block_B.tolist() == [2, 3] and at.column_B.tolist() == [1, 0]
  assert at.column_M.tolist() == [2, 2, 1]  # the last block of slot 0
  np.testing.assert_array_equal(at.age_MC, [[2, 1], [3, 2], [1, 0]])
  np.testing.assert_array_equal(at.seen_MC, [[1, 1], [1, 1], [1, 0]])
  free = pool.replace(owner_M=jnp.full(3, FREE))
  assert not free.step(jnp.int32(9), jnp.asarray([3, 2])).seen_MC.any()


@pytest.mark.parametrize(
  ('tokens', 'cached', 'expected'),
  [
    (512, 6144, (64, 8, 96)),
    (100, 130, (64, 2, 3)),
    (100, 1, (64, 2, 2)),  # one whole response
    (10, 35, (10, 1, 4)),
  ],
)
def test_sizes(tokens, cached, expected):
  assert block_pool.sizes(tokens, cached) == expected
