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


def room(size=3, actions=2):
  """A random world: transitions [S, A, S] and rewards [S, A]."""
  keys = jax.random.split(jax.random.key(0), 2)
  kernel = jax.nn.softmax(jax.random.normal(keys[0], (size, actions, size)))
  return kernel, jax.random.normal(keys[1], (size, actions))


def soft_return(logp, kernel, reward, gamma, temperature):
  """The exact return with entropy, by a solve."""
  p = jnp.exp(logp)
  gain = (p * (reward - temperature * logp)).sum(axis=1)
  step = jnp.einsum('sa,sat->st', p, kernel)
  return jnp.linalg.solve(jnp.eye(len(gain)) - gamma * step, gain).mean()


def test_the_soft_policy_by_hand():
  """E1: softmax(r / temperature) without a future, and no slope with one."""
  kernel, reward = room()
  found = implicit.soft_policy(kernel, reward, 0.0, 0.5)
  np.testing.assert_allclose(found, jax.nn.log_softmax(2 * reward), rtol=1e-5)
  found = implicit.soft_policy(kernel, reward, 0.9, 0.5)

  def total(logits):
    logp = jax.nn.log_softmax(logits)
    return soft_return(logp, kernel, reward, 0.9, 0.5)

  np.testing.assert_allclose(jax.grad(total)(found), 0.0, atol=1e-5)
  assert jnp.abs(jax.grad(total)(jnp.zeros((3, 2)))).max() > 0.1


def test_gradients_through_the_soft_policy():
  """Within 2% of the finite difference in float32, in vmap and jit, too."""
  kernel, reward = room()
  aim = jnp.arange(6.0).reshape(3, 2)

  @jax.jit
  def total(reward):
    logp = implicit.soft_policy(kernel, reward, 0.9, 0.5)
    return (jnp.exp(logp) * aim).sum()

  found = jax.grad(total)(reward)
  for place in np.ndindex(3, 2):
    move = jnp.zeros((3, 2)).at[place].set(2e-2)
    slope = (total(reward + move) - total(reward - move)) / 4e-2
    np.testing.assert_allclose(found[place], slope, rtol=2e-2, atol=2e-3)
  both = jax.vmap(jax.grad(total))(jnp.stack([reward, reward]))
  np.testing.assert_allclose(both[1], found, rtol=1e-4, atol=1e-5)


def test_sampled_gradients_by_hand():
  """E1: losses (1, 3) of two draws, and scores that are the parameter."""

  def total(x):
    return implicit.sampled(jnp.array([1.0, 3.0]) * x[0], x[1:])

  grad = jax.grad(total)(jnp.array([1.0, 0.3, 0.4]))
  # (1 - 3) / 2 and (3 - 1) / 2, beside the mean of both losses.
  np.testing.assert_allclose(grad, [2.0, -1.0, 1.0], rtol=1e-6)
  assert total(jnp.array([1.0, 0.3, 0.4])) == 2.0


def test_sampled_gradients_are_those_of_the_expectation():
  """The mean over many draws is the exact gradient, within 5 errors."""
  nu = jnp.array([0.3, -0.2, 0.5])

  def loss(nu, arm):
    return nu[arm] ** 2 + arm

  def exact(nu):
    return (jax.nn.softmax(nu) * loss(nu, jnp.arange(3))).sum()

  def estimate(nu, key):
    logp = jax.nn.log_softmax(nu)
    arm = jax.random.categorical(key, logp, shape=(4,))
    return implicit.sampled(loss(nu, arm), logp[arm])

  keys = jax.random.split(jax.random.key(1), 20_000)
  found = jax.jit(jax.vmap(jax.grad(estimate), in_axes=(None, 0)))(nu, keys)
  error = found.std(axis=0) / len(keys) ** 0.5
  gap = jnp.abs(found.mean(axis=0) - jax.grad(exact)(nu))
  assert (gap < 5 * error).all() and error.max() < 0.02
