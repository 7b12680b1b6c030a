"""HNPG: natural steps, and a critic that is fitted on data, too."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.papers.control import lock
from rl_jax.control import natural
from rl_jax.control.natural import Transitions


def true_values(kernel_HSAS, reward_HSA, policy_HSA):
  """Q of the policy [H, S, A]."""
  after, found = np.zeros(policy_HSA.shape[1]), []
  for h in reversed(range(len(policy_HSA))):
    q = reward_HSA[h] + kernel_HSAS[h] @ after
    after = (policy_HSA[h] * q).sum(axis=1)
    found.append(q)
  return np.stack(found[::-1])


def random_policy(key, shape):
  return jax.nn.softmax(jax.random.normal(key, shape))


def every_pair(kernel_HSAS, reward_HSA):
  """One transition of each state and action of a world without chance."""
  H, S, A = reward_HSA.shape
  state, action = (x.ravel() for x in np.indices((S, A)))
  after = kernel_HSAS.reshape(H, S * A, S).argmax(axis=2)
  fixed = [jnp.tile(jnp.asarray(x)[None], (H, 1)) for x in (state, action)]
  return Transitions(*fixed, reward_HSA.reshape(H, -1), after)


def certain(horizon=4):
  """A lock whose right actions lead to one of both good states."""
  kernel, reward, _ = lock.lock(jax.random.key(0), horizon, 3)
  S = kernel.shape[-1]
  return jax.nn.one_hot(kernel.argmax(axis=-1), S), reward


def test_critic_by_hand():
  """E1: returns 2 and 1 of the policy, 1 of data: (3/2 + 1) / 2 in one cell."""
  own = Transitions(
    *(jnp.zeros((1, 2), jnp.int32),) * 2, *2 * (jnp.zeros((1, 2)),)
  )
  own = own._replace(reward=jnp.array([[2.0, 1.0]]), after=own.state)
  one = jnp.zeros((1, 1), jnp.int32)
  data = Transitions(one, one, jnp.ones((1, 1)), one)
  policy = jnp.full((1, 1, 2), 0.5)
  both = natural.fitted_values(own, data, policy, 0.0)
  np.testing.assert_allclose(both[0, 0, 0], 1.25, rtol=1e-6)
  alone = natural.fitted_values(own, None, policy, 0.0)
  np.testing.assert_allclose(alone[0, 0, 0], 1.5, rtol=1e-6)


def test_data_give_the_values_of_the_policy():
  """E1: fitted Q evaluation on all pairs has no residual."""
  kernel, reward = certain()
  policy = random_policy(jax.random.key(1), reward.shape)
  found = natural.fitted_values(None, every_pair(kernel, reward), policy, 0.0)
  np.testing.assert_allclose(
    found, true_values(kernel, reward, policy), rtol=1e-5, atol=1e-6
  )


def test_order_of_episodes_changes_nothing():
  """E1."""
  kernel, reward = certain()
  policy = random_policy(jax.random.key(1), reward.shape)
  own = natural.play(kernel, reward, policy, jax.random.key(2), 8)
  turned = jax.tree.map(lambda x: x[:, ::-1], own)
  np.testing.assert_allclose(
    natural.fitted_values(turned, own, policy),
    natural.fitted_values(own, turned, policy),
    rtol=1e-5,
    atol=1e-7,
  )


def test_advantages_by_hand():
  """E1: two steps, lambda .5: delta_1 = 1 - .4, delta_0 = .4 - .3."""
  zero = jnp.zeros((2, 1), jnp.int32)
  own = Transitions(zero, zero, jnp.array([[0.0], [1.0]]), zero)
  found = natural.advantages(own, jnp.array([[0.3], [0.4]]), 0.5)
  np.testing.assert_allclose(found[:, 0], [0.1 + 0.5 * 0.6, 0.6], rtol=1e-6)
  whole = natural.advantages(own, jnp.array([[0.3], [0.4]]), 1.0)
  np.testing.assert_allclose(whole[:, 0], [0.7, 0.6], rtol=1e-6)


def test_conjugate_gradients_solve():
  """E1: three steps for three equations."""
  a = jnp.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]])
  b = jnp.array([1.0, 2.0, 3.0])
  x = natural.conjugate_gradients(lambda v: a @ v, b, 3)
  np.testing.assert_allclose(a @ x, b, rtol=1e-5)


def of_arms(advantage):
  """(surrogate, divergence) of a softmax that is uniform at 0."""
  uniform = jnp.full(3, 1 / 3)

  def divergence(theta):
    return uniform @ (jnp.log(uniform) - jax.nn.log_softmax(theta))

  return lambda theta: jax.nn.softmax(theta) @ advantage, divergence


def test_a_whole_step_has_the_asked_divergence():
  """Within 10% of the quadratic model without damping."""
  surrogate, divergence = of_arms(jnp.array([1.0, 0.0, -1.0]))
  theta = natural.natural_step(
    surrogate, divergence, jnp.zeros(3), size=1e-3, damping=1e-6
  )
  np.testing.assert_allclose(divergence(theta), 1e-3, rtol=0.1)
  assert surrogate(theta) > surrogate(jnp.zeros(3))


def test_it_never_makes_the_surrogate_worse():
  """E0: without a gain the parameters stay."""
  surrogate, divergence = of_arms(jnp.zeros(3))
  theta = natural.natural_step(surrogate, divergence, jnp.ones(3))
  np.testing.assert_array_equal(theta, 1.0)
  steep, _ = of_arms(jnp.array([5.0, -5.0, 0.0]))
  start = jnp.array([0.0, 1.0, 0.0])
  for size in (0.01, 1.0, 100.0):
    moved = natural.natural_step(steep, divergence, start, size=size)
    assert steep(moved) >= steep(start)
