"""Robust least-squares value iteration."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.control import robust

VALUE = jnp.arange(4.0)
UNIFORM = jnp.full((1, 4), 0.25)


def worst(value, rho, least=0.0):
  return robust.worst_means(UNIFORM, value, jnp.array([rho]), least)[0]


def iteration(rho=0.0, **fields):
  """Two states, two actions, one-hot features of (state, action)."""
  settings = {
    'phi_SAD': jnp.eye(4).reshape(2, 2, 4),
    'reward_SA': jnp.array([[0.0, 0.0], [1.0, 1.0]]),
    'reference_SA': jnp.full((2, 2), 0.5),
    'rho_D': jnp.full(4, rho),
    'horizon': 2,
    'top': 2.0,
    'bonus': 0.0,
    'ridge': 1e-4,
    **fields,
  }
  return robust.RobustIteration(**settings)


def seen(count=1000.0):
  """Action 1 leads to state 1, action 0 to state 0, which was seen often."""
  to_DS = jnp.tile(jnp.eye(2), (2, 1))
  return robust.Memory(
    jnp.tile(jnp.eye(4) / count, (2, 1, 1)), jnp.tile(count * to_DS, (2, 1, 1))
  )


def test_worst_mean_by_hand():
  """E1: a quarter of the mass moves from 3 to 0: (0 + 1 + 2 + 0) / 4."""
  np.testing.assert_allclose(worst(VALUE, 0.25), 0.75, rtol=1e-6)
  np.testing.assert_allclose(worst(VALUE, 0.0), 1.5, rtol=1e-6)
  np.testing.assert_allclose(worst(VALUE + 1, 0.25, 1.0), 1.75, rtol=1e-6)


def test_group_rewards_by_hand():
  """E1: 6 of 8 right and rho .25 is .5; 8 of 8 are 1, as all are the least."""
  reward = jnp.array([1.0] * 6 + [0.0] * 2)
  weight, rho = jnp.full((1, 8), 1 / 8), jnp.array([0.25])
  np.testing.assert_allclose(
    robust.worst_means(weight, reward, rho), 0.5, rtol=1e-6
  )
  ones = jnp.ones(8)
  np.testing.assert_allclose(
    robust.worst_means(weight, ones, rho, 1.0), 1.0, rtol=1e-6
  )


def test_soft_mean_by_hand():
  """E1: -log of the mean of exp(-V), and the bound by the largest return."""
  np.testing.assert_allclose(
    robust.soft_means(UNIFORM, VALUE, 1.0, 3.0), 0.9461, rtol=1e-4
  )
  np.testing.assert_allclose(
    robust.soft_means(-UNIFORM, VALUE, 1.0, 3.0), 3.0, rtol=1e-6
  )


def test_soft_policy_by_hand():
  """E1, and its limits in eta."""
  q, reference = jnp.array([[1.0, 2.0]]), jnp.array([[0.5, 0.5]])
  policy, value = robust.soft_policy(q, reference, 1.0)
  np.testing.assert_allclose(policy, [[0.2689, 0.7311]], rtol=1e-3)
  np.testing.assert_allclose(value, [1.6201], rtol=1e-4)
  np.testing.assert_allclose(
    robust.soft_policy(q, reference, 0.01)[0], [[0.0, 1.0]], atol=1e-6
  )
  np.testing.assert_allclose(
    robust.soft_policy(q, jnp.array([[0.9, 0.1]]), 1e4)[0],
    [[0.9, 0.1]],
    rtol=1e-3,
  )


def test_bonus_by_hand():
  """E1: phi = (.5, .5), Lam = diag(3, 2): .5 / sqrt 3 + .5 / sqrt 2 = .6422."""
  one = iteration(
    phi_SAD=jnp.array([[[0.5, 0.5]]]),
    reward_SA=jnp.zeros((1, 1)),
    reference_SA=jnp.ones((1, 1)),
    rho_D=jnp.zeros(2),
    horizon=1,
    ridge=1.0,
    bonus=1.0,
  )
  inverse = jnp.diag(1 / jnp.array([3.0, 2.0]))
  memory = robust.Memory(inverse[None], jnp.zeros((1, 2, 1)))
  np.testing.assert_allclose(one.plan(memory)[1], [[0.6422]], rtol=1e-3)


def test_without_a_radius_it_is_value_iteration():
  """E1 up to the ridge: two steps of a world of two states, greedy."""
  policy, value = iteration(eta=1e-3).plan(seen())
  np.testing.assert_allclose(value, [[1.0, 2.0], [0.0, 1.0]], atol=2e-3)
  np.testing.assert_allclose(policy[0], [[0.0, 1.0], [0.0, 1.0]], atol=1e-6)


def test_a_radius_costs_a_share_of_the_best_value():
  """E1 up to the ridge: all values that follow lose rho of 1."""
  _, value = iteration(0.3, eta=1e-3).plan(seen())
  np.testing.assert_allclose(value[0], [0.7, 1.7], atol=2e-3)


def test_order_of_states_changes_nothing():
  """E1: of the values and their weights."""
  order = jnp.array([2, 0, 3, 1])
  weight = jnp.array([[0.1, 0.2, 0.3, 0.4]])
  rho = jnp.array([0.15])
  np.testing.assert_allclose(
    robust.worst_means(weight[:, order], VALUE[order], rho),
    robust.worst_means(weight, VALUE, rho),
    rtol=1e-6,
  )


def test_an_episode_is_remembered():
  """E0: one next state of every step, where one feature is known better."""
  kernel = jnp.tile(jnp.eye(2), (2, 1, 1))
  one = iteration(ridge=0.5)
  memory = one.episode(one.start(), kernel, jnp.int32(0), jax.random.key(0))
  np.testing.assert_array_equal(memory.moved_HDS.sum(axis=(1, 2)), [1.0, 1.0])
  diagonal = jnp.diagonal(memory.inverse_HDD, axis1=1, axis2=2)
  np.testing.assert_allclose(
    jnp.sort(diagonal, axis=1), [[1 / 1.5, 2, 2, 2]] * 2, rtol=1e-6
  )


def test_steps_are_those_of_the_inverse():
  """E1: ten updates, and the inverse of the sum."""
  phi_10D = jax.random.normal(jax.random.key(1), (10, 3))
  memory = robust.Memory(2 * jnp.eye(3)[None], jnp.zeros((1, 3, 1)))
  for phi_D in phi_10D:
    memory = memory.with_step(phi_D[None], jnp.ones((1, 1)))
  gram_DD = 0.5 * np.eye(3) + np.asarray(phi_10D).T @ np.asarray(phi_10D)
  np.testing.assert_allclose(
    memory.inverse_HDD[0], np.linalg.inv(gram_DD), rtol=1e-4, atol=1e-6
  )
  np.testing.assert_allclose(
    memory.moved_HDS[0, :, 0], phi_10D.sum(axis=0), rtol=1e-5
  )


def test_expected_return_by_hand():
  """E1: a fair coin to the state that pays 1 in the second step."""
  policy = jnp.full((2, 2, 2), 0.5)
  kernel = jnp.tile(jnp.eye(2), (2, 1, 1))
  reward = jnp.array([[0.0, 0.0], [1.0, 1.0]])
  np.testing.assert_allclose(
    robust.expected_return(policy, kernel, reward, 0), 0.5, rtol=1e-6
  )
