"""CurES: how often prompts are drawn, and what is counted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces import selection

# p = 1/2, 1/6 and 5/6.
COUNTS = {'won': jnp.array([1.0, 0, 4]), 'drawn': jnp.array([2.0, 4, 4])}


def shares(t, draws=4000):
  """The number of draws of each of the three prompts, one a batch."""
  selector = selection.SpreadSampling(t=t)
  state = {**selector.init(3), **COUNTS}

  def one(batch):
    ids, _ = selector.select({**state, 'batches': batch}, jax.random.key(0), 1)
    return ids[0]

  found = jax.vmap(one)(jnp.arange(draws))
  return np.bincount(np.asarray(found), minlength=3) / draws


@pytest.mark.parametrize(
  ('t', 'expected'),
  [
    # e^(.5 / t) and twice e^(.372678 / t), at t = .1: 148.4 and 41.5.
    (0.1, [0.6411, 0.1794, 0.1794]),
    (1e6, [1 / 3, 1 / 3, 1 / 3]),  # the reduction: a uniform draw
  ],
)
def test_frequencies_by_hand(t, expected):
  np.testing.assert_allclose(shares(t), expected, atol=0.025)


def test_a_batch_has_every_prompt_once():
  selector = selection.SpreadSampling(t=0.01)
  found, after = selector.select(
    {**selector.init(3), **COUNTS}, jax.random.key(1), 3
  )
  assert sorted(np.asarray(found).tolist()) == [0, 1, 2]
  assert after['batches'] == 1


def test_right_and_wrong_may_change_places(observed):
  """E0: invariance. A failed verification is not a sample."""
  selector = selection.SpreadSampling()
  state = selector.init(2)
  reward = np.array([[1.0, 0.0, 1.0, np.nan], [0.0, 0.0, 0.0, 0.0]])
  some, others = (
    selector.observe(state, np.array([1, 0]), observed(x.tolist()))
    for x in (reward, 1.0 - reward)
  )
  np.testing.assert_array_equal(some['won'], [0.0, 2.0])
  np.testing.assert_array_equal(some['drawn'], [4.0, 3.0])
  drawn = [selector.select(x, jax.random.key(2), 2)[0] for x in (some, others)]
  np.testing.assert_array_equal(*drawn)
