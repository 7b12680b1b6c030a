"""KL estimators: values, and what their gradients are gradients of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.pieces.ops.divergences import ESTIMATORS, kl_estimate, kl_exact

P = np.array([0.5, 0.3, 0.2])
Q = np.array([0.25, 0.35, 0.4])
LOGITS = jnp.log(jnp.asarray(P, jnp.float32))
LOGQ = jnp.log(jnp.asarray(Q, jnp.float32))


def expected_estimate(logits, estimator):
  """E over tokens drawn from p (not differentiated) of the estimate."""
  logp = jax.nn.log_softmax(logits)
  p = jax.lax.stop_gradient(jnp.exp(logp))
  return (p * kl_estimate(logp, LOGQ, estimator)).sum()


# p = .5, other = .25: x = -ln 2, k1 = .693147, k2 = .693147^2 / 2 = .240227,
# k3 = .5 + .693147 - 1 = .193147. p = .2, other = .4: x = ln 2, k3 = 2 - 1.693.
@pytest.mark.parametrize(
  'estimator, at_half, at_fifth',
  [
    ('k1', 0.693147, -0.693147),
    ('k2', 0.240227, 0.240227),
    ('k3', 0.193147, 0.306853),
    ('abs', 0.693147, 0.693147),
    ('k1+', 0.693147, -0.693147),
    ('k3+', 0.193147, 0.306853),
  ],
)
def test_values_by_hand(estimator, at_half, at_fifth):
  """Two tokens, one more and one less likely than under the other policy."""
  actual = kl_estimate(LOGITS[::2], LOGQ[::2], estimator)
  np.testing.assert_allclose(actual, [at_half, at_fifth], rtol=1e-5)


def test_k1_and_k3_are_unbiased_and_k2_is_not():
  """KL(p || q) = .5 ln 2 + .3 ln(6/7) + .2 ln .5 = .161699; E k2 = .171723."""
  np.testing.assert_allclose(kl_exact(LOGITS, LOGQ), 0.161699, rtol=1e-5)
  for name, value in (('k1', 0.161699), ('k3', 0.161699), ('k2', 0.171723)):
    np.testing.assert_allclose(
      expected_estimate(LOGITS, name), value, rtol=1e-5
    )


def test_gradients_as_losses():
  """k1: zero. k2, k1+, k3+: that of KL(p || q). k3: that of KL(q || p)."""

  def forward(logits):
    return kl_exact(jax.nn.log_softmax(logits), LOGQ)

  def backward(logits):
    return kl_exact(LOGQ, jax.nn.log_softmax(logits))

  reverse_kl, forward_kl = jax.grad(forward)(LOGITS), jax.grad(backward)(LOGITS)
  assert np.abs(reverse_kl - forward_kl).max() > 1e-2
  expected = {
    'k1': jnp.zeros(3),
    'k2': reverse_kl,
    'k1+': reverse_kl,
    'k3+': reverse_kl,
    'k3': forward_kl,
  }
  for name, gradient in expected.items():
    actual = jax.grad(expected_estimate)(LOGITS, name)
    np.testing.assert_allclose(actual, gradient, atol=1e-6, err_msg=name)


def test_equal_policies_have_no_divergence_and_no_gradient():
  """Exactly 0 for every estimator but k1, whose slope is 1 by definition."""
  for name in ESTIMATORS:
    value, slope = jax.value_and_grad(
      lambda logp, name=name: kl_estimate(logp, jnp.float32(-1.0), name)
    )(jnp.float32(-1.0))
    assert value == 0.0, name
    assert slope == (1.0 if name == 'k1' else 0.0), name


def test_unknown_estimator_is_named():
  """The message lists the choices."""
  with pytest.raises(ValueError, match='k4.*k1, k2'):
    kl_estimate(LOGITS, LOGQ, 'k4')
