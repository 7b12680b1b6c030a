"""Uniform prompt draws."""

import jax
import numpy as np
import pytest

from rl_jax.pieces import selection


def test_a_batch_has_no_repeats_and_is_counted():
  """Four of five prompts, each once; the whole set when five are asked."""
  selector = selection.Uniform()
  state = selector.init(5)
  ids, state = selector.select(state, jax.random.key(0), 4)
  assert ids.shape == (4,) and len(set(ids.tolist())) == 4
  np.testing.assert_array_equal(np.bincount(ids, minlength=5), state['draws'])
  ids, state = selector.select(state, jax.random.key(1), 5)
  assert sorted(ids.tolist()) == [0, 1, 2, 3, 4]
  assert state['draws'].sum() == 9


def test_every_prompt_is_equally_likely():
  """400 single draws of 4: 100 each, sd 8.7; rewards change nothing."""
  selector = selection.Uniform()
  state = selector.init(4)
  state = selector.observe(state, np.arange(4), np.ones(4))

  def draw(key):
    return selector.select(state, key, 1)[0]

  keys = jax.random.split(jax.random.key(0), 400)
  counts = np.bincount(np.ravel(jax.vmap(draw)(keys)), minlength=4)
  assert (np.abs(counts - 100) < 4 * 8.7).all()


def test_more_than_there_are_is_an_error():
  """Both numbers are named."""
  selector = selection.Uniform()
  with pytest.raises(ValueError, match='6 prompts .* from 5'):
    selector.select(selector.init(5), jax.random.key(0), 6)
