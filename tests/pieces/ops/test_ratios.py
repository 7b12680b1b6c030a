"""Importance ratios and the clipped surrogate."""

import jax.numpy as jnp
import numpy as np

from rl_jax.pieces.ops import ratios


def test_log_ratio_is_bounded_and_zero_where_masked():
  """A difference of 50 nats becomes 20; a masked infinity becomes 0."""
  logp = jnp.array([-1.0, -60.0, -jnp.inf])
  old = jnp.array([-1.5, -10.0, 0.0])
  mask = jnp.array([1.0, 1.0, 0.0])
  np.testing.assert_array_equal(
    ratios.log_ratio(logp, old, mask), [0.5, -20.0, 0.0]
  )


def test_sequence_ratio_is_the_geometric_mean():
  """d = .1, -.3, .2, .04 has mean .01 and exp(.01) = 1.010050."""
  d = jnp.array([[0.1, -0.3, 0.2, 0.04, 9.0]])
  mask = jnp.array([[1.0, 1.0, 1.0, 1.0, 0.0]])
  np.testing.assert_allclose(
    jnp.exp(ratios.sequence_log_ratio(d, mask)), [1.010050], rtol=1e-6
  )


def test_indicator_marks_where_the_surrogate_is_flat():
  """Clipped means: moved further than allowed in the direction of A."""
  ratio = jnp.array([1.3, 1.3, 0.7, 0.7, 1.0, 1.3])
  adv = jnp.array([1.0, -1.0, 1.0, -1.0, 1.0, 0.0])
  np.testing.assert_array_equal(
    ratios.is_clipped(ratio, adv, 0.2, 0.2), [1, 0, 0, 1, 0, 0]
  )
