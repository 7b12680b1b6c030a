"""Mean and deviation of a stream."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces.ops import moments


def streamed(*parts):
  """The state after the parts of a stream, and masked numbers beside them."""
  state = moments.none()
  for x in parts:
    x = jnp.asarray([*x, jnp.nan], jnp.float32)
    mask = jnp.ones(len(x)).at[-1].set(0.0)
    state = moments.merged(state, x, mask)
  return state


def test_by_hand():
  """1, 2, 6: mean 3, squares 4 + 1 + 9, deviation sqrt(14 / 2)."""
  for parts in (((1, 2, 6),), ((1, 2), (6,)), ((6,), (), (1, 2))):
    state = streamed(*parts)
    np.testing.assert_allclose(state['mean'], 3.0, rtol=1e-6)
    np.testing.assert_allclose(
      moments.deviation(state), np.sqrt(7.0), rtol=1e-6
    )


@pytest.mark.parametrize('value', np.linspace(0.1, 1.1, 11))
def test_equal_numbers_have_no_deviation(value):
  """E0, in parts of several sizes, whose plain float32 means differ."""
  state = streamed(*([value] * n for n in (3, 5, 7, 10)))
  assert state['mean'] == np.float32(value)
  assert moments.deviation(state) == 0.0
