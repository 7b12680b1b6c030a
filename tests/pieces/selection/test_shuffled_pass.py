"""Passes over the prompts, and the permutation that orders them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import randomness
from rl_jax.pieces import selection

SELECT = jax.jit(selection.ShuffledPass().select, static_argnames='count')


@pytest.mark.parametrize('size', [1, 2, 17, 1000])
def test_permuted_is_a_permutation(size):
  """Every entry once, for sizes around powers of 4 and far from them."""
  found = randomness.permuted(jax.random.key(3), jnp.arange(size), size)
  assert sorted(found.tolist()) == list(range(size))


def test_every_entry_is_equally_likely_at_every_position():
  """2000 orders of 5: each of 25 cells 400 times, sd 17.9."""
  keys = jax.random.split(jax.random.key(0), 2000)
  orders = jax.vmap(lambda k: randomness.permuted(k, jnp.arange(5), 5))(keys)
  counts = [np.bincount(column, minlength=5) for column in np.asarray(orders).T]
  assert (np.abs(np.array(counts) - 400) < 4.5 * 17.9).all()


def test_neighbours_are_not_neighbours():
  """Few of 10,000 consecutive entries are adjacent; they are uncorrelated (sd
  .01).
  """
  order = np.asarray(
    randomness.permuted(jax.random.key(1), jnp.arange(10_000), 10_000)
  )
  assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.05
  assert (np.abs(np.diff(order)) == 1).sum() < 15  # 2 are expected


def test_a_pass_has_every_prompt_once():
  """Batches of 4 over 10 prompts: two passes are five batches, the third of
  which crosses; the passes have different orders."""
  selector, key = selection.ShuffledPass(), jax.random.key(0)
  state, ids = selector.init(10), []
  for _ in range(5):
    found, state = SELECT(state, key, count=4)
    ids += found.tolist()
  assert sorted(ids[:10]) == sorted(ids[10:]) == list(range(10))
  assert ids[:10] != ids[10:]
  np.testing.assert_array_equal(state['visits'], np.full(10, 2))


def test_the_order_does_not_depend_on_the_batch():
  """E0: one batch of 8 or four of 2, also where a batch is larger than all."""
  selector, key = selection.ShuffledPass(), jax.random.key(0)
  whole, _ = SELECT(selector.init(3), key, count=8)
  state, parts = selector.init(3), []
  for _ in range(4):
    found, state = SELECT(state, key, count=2)
    parts += found.tolist()
  assert parts == whole.tolist()
