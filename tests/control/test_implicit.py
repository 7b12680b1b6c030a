"""PARL: the hypergradient of reward learning."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.control import implicit


def value(nu, theta):
  """Two arms: nu pi(1) - theta^2 / 4."""
  return nu * jax.nn.sigmoid(theta) - theta**2 / 4


def squared(nu, theta):
  del nu
  return (jax.nn.sigmoid(theta) - 0.8) ** 2


def preferred(nu, theta):
  """Arm 1 is always preferred; pairs are of two draws of the policy."""
  p = jax.nn.sigmoid(theta)
  return 2 * p * (1 - p) * -jax.nn.log_sigmoid(nu) + (
    p**2 + (1 - p) ** 2
  ) * jnp.log(2.0)


def at(upper, nu=2.0):
  nu = jnp.float32(nu)
  theta = implicit.best_response(value, nu, jnp.float32(0.5))
  return theta, *implicit.hypergradient(upper, value, nu, theta)


def numeric(upper, nu=2.0, eps=1e-2):
  def total(nu):
    nu = jnp.float32(nu)
    return upper(nu, implicit.best_response(value, nu, jnp.float32(0.5)))

  return (total(nu + eps) - total(nu - eps)) / (2 * eps)


def test_by_hand():
  """E1: theta*, its policy, and both hypergradients of the spec."""
  theta, total, direct = at(squared)
  np.testing.assert_allclose(theta, 0.841833, rtol=1e-5)
  np.testing.assert_allclose(jax.nn.sigmoid(theta), 0.698851, rtol=1e-5)
  np.testing.assert_allclose(total, -0.0134257, rtol=1e-4)
  assert direct == 0
  _, total, direct = at(preferred)
  np.testing.assert_allclose(direct, -0.0501745, rtol=1e-4)
  np.testing.assert_allclose(total, -0.0202850, rtol=1e-3)


def test_it_is_the_finite_difference():
  """Within 1% in float32."""
  for upper in (squared, preferred):
    np.testing.assert_allclose(at(upper)[1], numeric(upper), rtol=1e-2)


def test_what_ignores_the_policy_has_no_second_term():
  """E0: G independent of theta, and a frozen policy, are ordinary learning."""

  def only_nu(nu, theta):
    del theta
    return nu**2

  _, total, direct = at(only_nu)
  assert total == direct == 4.0


def test_arrays_of_parameters():
  """E1: two independent copies have the gradient of one each."""

  def values(nu, theta):
    return value(nu, theta).sum()

  def uppers(nu, theta):
    return preferred(nu, theta).sum()

  nu = jnp.array([[2.0], [2.0]])
  theta = implicit.best_response(values, nu, jnp.full((2, 1), 0.5))
  total, _ = implicit.hypergradient(uppers, values, nu, theta)
  np.testing.assert_allclose(total, -0.0202850, rtol=1e-3)
