"""Rewards that are learned for the primary return."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.control import alignment, implicit

LAMBDA = 0.5
PRIMARY, AUXILIARY = jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0])


def primary(theta):
  return jax.nn.softmax(theta) @ PRIMARY


def value(phi, theta):
  """Two arms under phi_1 r_primary + phi_2 r_auxiliary, with a ridge."""
  reward = phi[0] * PRIMARY + phi[1] * AUXILIARY
  return jax.nn.softmax(theta) @ reward - LAMBDA / 2 * (theta**2).sum()


def at_best(phi, steps=200):
  """theta*, by gradient steps."""

  def one(_, theta):
    return theta + 0.5 * jax.grad(value, argnums=1)(phi, theta)

  return jax.lax.fori_loop(0, steps, one, jnp.zeros(2))


def gradient(phi, theta, **fields):
  return alignment.implicit_gradient(primary, value, phi, theta, **fields)


def test_diagonal_by_hand():
  """E1: uniform policy, d J = (1/4, -1/4), d_phi d_theta V = the same, +-."""
  found = gradient(jnp.ones(2), jnp.zeros(2), rate=1 / LAMBDA, terms=0)
  # 2 * (1/4 * 1/4 + 1/4 * 1/4) = 1/4, and its negative for the other arm.
  np.testing.assert_allclose(found, [0.25, -0.25], rtol=1e-5)


def test_many_terms_are_the_inverse_of_parl():
  """E1: with -J as the upper loss, and 1% of the finite difference."""
  phi = jnp.array([1.0, 0.4])
  theta = at_best(phi)
  found = gradient(phi, theta, rate=1.0, terms=200)
  exact, direct = implicit.hypergradient(
    lambda phi, theta: -primary(theta), value, phi, theta
  )
  np.testing.assert_allclose(found, -exact, rtol=1e-4)
  np.testing.assert_array_equal(direct, 0.0)
  eps = jnp.array([1e-2, 0.0])
  change = primary(at_best(phi + eps)) - primary(at_best(phi - eps))
  np.testing.assert_allclose(found[0], change / 2e-2, rtol=1e-2)


def test_one_step_is_a_product_of_gradients():
  """E1: rate <d J(theta'), d J_j(theta)>, and its finite difference."""
  phi, theta, rate = jnp.array([0.3, 0.6]), jnp.array([0.2, -0.1]), 0.7
  found = alignment.one_step_gradient(primary, value, phi, theta, rate)
  after = theta + rate * jax.grad(value, argnums=1)(phi, theta)
  parts = [
    jax.grad(lambda t, r=reward: jax.nn.softmax(t) @ r)(theta)
    for reward in (PRIMARY, AUXILIARY)
  ]
  products = [rate * jax.grad(primary)(after) @ part for part in parts]
  np.testing.assert_allclose(found, products, rtol=1e-5)


def test_a_misleading_reward_loses_its_weight():
  """The weight of the other arm's reward falls below 0, as the spec asks."""

  def one(_, phi):
    theta = at_best(phi, 20)
    return phi + 0.5 * gradient(phi, theta, rate=1 / LAMBDA, terms=0)

  phi = jax.lax.fori_loop(0, 100, one, jnp.ones(2))
  assert phi[1] < 0 < phi[0]


def test_an_order_of_arms_changes_nothing():
  """E1: arms that are swapped, in all rewards and in theta."""
  phi = jnp.array([1.0, 0.4])
  theta = jnp.array([0.3, -0.2])

  def swapped(phi, theta):
    return value(phi, theta[::-1])

  found = alignment.implicit_gradient(
    lambda theta: primary(theta[::-1]),
    swapped,
    phi,
    theta[::-1],
    rate=1.0,
    terms=5,
  )
  expected = gradient(phi, theta, rate=1.0, terms=5)
  np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_blended_rewards():
  """E0: only phi_2 = 1 is the primary reward; a pytree of theta is allowed."""
  primary_SA, auxiliary_SA = jnp.eye(2), jnp.full((2, 2), 3.0)
  phi = jnp.array([0.0, 0.0, 1.0, 0.0])
  found = alignment.blended(phi, primary_SA, auxiliary_SA)
  np.testing.assert_array_equal(found, primary_SA)
  phi = jnp.array([1.0, 2.0, 0.0, -1.0])
  found = alignment.blended(phi, primary_SA, auxiliary_SA)
  np.testing.assert_array_equal(found, [[-2.0, -2.0], [-1.0, -1.0]])
  tree = gradient_of_tree()
  np.testing.assert_allclose(tree, [0.25, -0.25], rtol=1e-5)


def gradient_of_tree():
  """The example by hand, where each arm has parameters by itself."""

  def joined(theta):
    return jnp.concatenate([theta['a'], theta['b']])

  return alignment.implicit_gradient(
    lambda theta: primary(joined(theta)),
    lambda phi, theta: value(phi, joined(theta)),
    jnp.ones(2),
    {'a': jnp.zeros(1), 'b': jnp.zeros(1)},
    rate=1 / LAMBDA,
    terms=0,
  )
