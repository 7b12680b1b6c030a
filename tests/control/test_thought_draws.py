"""Draws of continuous thoughts, and their likelihoods."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.control.thought_draws import DirichletDraws, TokenDraws


def density(prob, share, scale):
  """exp(log p(w)) of one thought."""
  draws, prob = DirichletDraws(scale=scale), jnp.array([[prob]])
  return float(jnp.exp(draws.logp(prob, jnp.log(jnp.array([[share]])))[0, 0]))


def test_densities_by_hand():
  """E1: alpha (1, 1) is uniform; alpha (1.5, .5) at (.25, .75) has
  w_1^.5 w_2^-.5 / (G(1.5) G(.5)) = 2 / pi (1 / 3)^.5; (2, 2) at (.25, .75) has
  6 w_1 w_2, G(4) = 6."""
  share = (0.25, 0.75)
  np.testing.assert_allclose(density((0.5, 0.5), share, 2.0), 1.0, rtol=1e-5)
  np.testing.assert_allclose(
    density((0.75, 0.25), share, 2.0), 2 / np.pi / np.sqrt(3), rtol=1e-5
  )
  np.testing.assert_allclose(
    density((0.5, 0.5), share, 4.0), 6 * 0.25 * 0.75, rtol=1e-5
  )


def sampled(draws, prob, rows=20000):
  """(shares, what was drawn) of so many draws."""
  prob_BA = jnp.broadcast_to(jnp.array(prob), (rows, len(prob)))
  return draws.sample(jax.random.key(0), prob_BA)


def test_shares_have_the_moments_of_the_distribution():
  """Mean p and variance p (1 - p) / (scale + 1), in 20,000 draws."""
  prob = np.array([0.6, 0.3, 0.1])
  for scale in (1.0, 9.0):
    share_BA, logw_BA = sampled(DirichletDraws(scale=scale), prob)
    np.testing.assert_allclose(share_BA.mean(axis=0), prob, atol=0.015)
    np.testing.assert_allclose(
      share_BA.var(axis=0), prob * (1 - prob) / (scale + 1), atol=0.01
    )
    np.testing.assert_allclose(jnp.exp(logw_BA), share_BA, rtol=1e-5)


def test_a_large_scale_is_the_whole_distribution():
  """The simpler form, up to draws with a standard deviation of .0005."""
  prob = np.array([0.6, 0.3, 0.1])
  share_BA, _ = sampled(DirichletDraws(scale=1e6), prob, rows=8)
  np.testing.assert_allclose(share_BA, np.tile(prob, (8, 1)), atol=3e-3)


def test_unlikely_tokens_are_left_out():
  """E0: their shares are 0, and their probabilities count nowhere."""
  draws = DirichletDraws(least=0.05)
  share_BA, logw_BA = sampled(draws, [0.7, 0.29, 0.01], rows=8)
  assert (share_BA[:, 2] == 0).all() and (logw_BA[:, 2] > 0).all()
  now, other = jnp.array([0.6, 0.3, 0.1]), jnp.array([0.6, 0.3, 0.0])
  np.testing.assert_array_equal(
    draws.logp(now[None, None], logw_BA[None]),
    draws.logp(other[None, None], logw_BA[None]),
  )
  # Of none that is likely the likeliest one remains, with a share of 1.
  share_BA, logw_BA = sampled(DirichletDraws(least=0.9), [0.5, 0.3], rows=4)
  np.testing.assert_array_equal(share_BA, [[1.0, 0.0]] * 4)
  found = draws.logp(jnp.array([[[0.2, 0.8]]]), logw_BA[None])
  np.testing.assert_allclose(found, 0.0, atol=1e-6)


def test_the_order_of_tokens_changes_no_density():
  """E1."""
  order = np.array([2, 0, 1])
  prob, share = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.7, 0.1])
  np.testing.assert_allclose(
    density(tuple(prob[order]), tuple(share[order]), 1.0),
    density(tuple(prob), tuple(share), 1.0),
    rtol=1e-5,
  )


def test_gradients_are_finite_at_small_shares():
  draws = DirichletDraws()
  prob = jnp.array([0.97, 0.02, 0.01])
  _, logw_BA = sampled(draws, prob, rows=200)
  slope = jax.grad(
    lambda p: draws.logp(jnp.broadcast_to(p, (1, 200, 3)), logw_BA[None]).sum()
  )(prob)
  assert np.isfinite(slope).all() and (np.asarray(slope) != 0).all()


@pytest.mark.parametrize(
  ('make', 'message'),
  [
    (lambda: TokenDraws(draws=0), 'TokenDraws.draws = 0'),
    (lambda: DirichletDraws(scale=0.0), 'DirichletDraws.scale = 0'),
    (lambda: DirichletDraws(least=1.5), 'DirichletDraws.least = 1.5'),
  ],
)
def test_limits(make, message):
  with pytest.raises(ValueError, match=message):
    make()
