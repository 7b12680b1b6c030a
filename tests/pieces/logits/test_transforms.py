"""Limits of transforms of logits at which they change nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces.logits.lagged_support import LaggedSupport
from rl_jax.pieces.logits.transforms import TopP
from rl_jax.pieces.roles import LogitContext

# Ten tokens of .1, whose sum is 1 + 2^-23 in float32, and one of e^-30 / 10.
PEAKED = jnp.array([[0.0] * 10 + [-30.0]])


def test_the_sum_before_the_last_token_passes_one():
  """Else the tests below show nothing."""
  assert jnp.cumsum(jax.nn.softmax(PEAKED))[9] > 1


def test_a_nucleus_of_all_mass_keeps_all_tokens():
  """p = 1: log-probs stay; p = .95 drops the last one only."""
  np.testing.assert_array_equal(TopP(p=1.0)(LogitContext(PEAKED)), PEAKED)
  found = np.asarray(TopP(p=0.95)(LogitContext(PEAKED)))[0]
  assert np.isfinite(found[:10]).all() and np.isneginf(found[10])


@pytest.mark.parametrize('traced', [False, True])
def test_the_support_of_all_mass_is_the_policy(traced):
  """p = 1: the uniform policy keeps 1/11 for what its copy found unlikely."""

  def logp(piece, own):
    return jax.nn.log_softmax(piece(LogitContext(own, {'lagged': PEAKED})))

  piece = jax.tree.map(jnp.float32, LaggedSupport(p=1.0, min_tokens=1))
  if traced:
    logp = jax.jit(logp)
  found = logp(piece, jnp.zeros((1, 11)))
  np.testing.assert_allclose(found, np.full((1, 11), -np.log(11)), rtol=1e-6)
