"""A mixture of experts as a policy."""

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.control import mixture
from rl_jax.control.mixture import Mixture, MixtureActor

OBS = jnp.array([[0.3, -0.2], [1.0, 0.5]])
ACTION = jnp.array([[0.1, 0.4], [-0.6, 0.2]])


def made(experts):
  policy = Mixture(experts=experts, width=8)
  return policy, policy.init(jax.random.key(0))


def rows(policy, params, **changed):
  return {
    'obs': OBS,
    'action': ACTION,
    'logp_old': policy.log_prob(params, OBS, ACTION),
    'advantage': jnp.array([1.0, -2.0]),
    'returns': jnp.array([0.5, 0.1]),
    **changed,
  }


def test_router_loss_by_hand():
  """E1: ((.5 - 0)^2 + (.3 - 1)^2 + (.2 - 0)^2) / 3 = .26."""
  found = mixture.router_loss(jnp.array([0.5, 0.3, 0.2]), jnp.int32(1))
  np.testing.assert_allclose(found, 0.26, rtol=1e-5)


def test_log_prob_by_hand():
  """E1: the logarithm of a sum of densities."""
  policy, params = made(3)
  weight = jnp.exp(policy.weights(params, OBS))
  mean, std = policy.means(params, OBS), jnp.exp(params['log_std'])[None]
  density = jnp.exp(-0.5 * ((ACTION[:, None] - mean) / std) ** 2) / (
    std * jnp.sqrt(2 * jnp.pi)
  )
  expected = jnp.log((weight * density.prod(axis=-1)).sum(axis=-1))
  found = policy.log_prob(params, OBS, ACTION)
  np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_one_expert_is_ppo():
  """E1: the router's loss is 0, and the policy one Gaussian."""
  policy, params = made(1)
  key = jax.random.key(1)
  own = policy.loss(params, rows(policy, params), key)
  without = policy.replace(router_coef=0.0)
  np.testing.assert_allclose(
    own, without.loss(params, rows(policy, params), key), rtol=1e-6
  )
  np.testing.assert_allclose(policy.weights(params, OBS), 0.0, atol=1e-6)


def test_the_ratio_is_one_before_the_first_step():
  """E1: minus the mean of the advantages, without critics and router."""
  policy, params = made(4)
  policy = policy.replace(value_coef=0.0, router_coef=0.0)
  exact = policy.q(params, OBS, ACTION)
  found = policy.loss(
    params, rows(policy, params, returns=exact), jax.random.key(1)
  )
  np.testing.assert_allclose(found, 0.5, rtol=1e-5)


def test_order_of_experts_changes_nothing():
  """E1: of the likelihood."""
  policy, params = made(3)
  order = jnp.array([2, 0, 1])

  def last(layers, size):
    w, b = layers[-1]
    w = w.reshape(-1, 3, size)[:, order].reshape(w.shape)
    return [*layers[:-1], (w, b.reshape(3, size)[order].ravel())]

  turned = {
    **params,
    'router': last(params['router'], 1),
    'mean': last(params['mean'], 2),
    'log_std': params['log_std'][order],
  }
  np.testing.assert_allclose(
    policy.log_prob(turned, OBS, ACTION),
    policy.log_prob(params, OBS, ACTION),
    rtol=1e-5,
  )


def test_draws_teach_the_router_only():
  """E0: Q and the means have the gradients that they have without it."""
  policy, params = made(3)
  key, data = jax.random.key(2), rows(policy, params)
  with_router = jax.grad(policy.loss)(params, data, key)
  without = jax.grad(policy.replace(router_coef=0.0).loss)(params, data, key)
  for name in ('q', 'mean', 'value', 'log_std'):
    jax.tree.map(
      np.testing.assert_array_equal, with_router[name], without[name]
    )
  w, _ = with_router['router'][-1]
  v, _ = without['router'][-1]
  assert (w != v).any()


def test_the_greedy_actor_takes_the_likeliest_mean():
  """E0."""
  policy, params = made(3)
  actor = MixtureActor(mixture=policy, params=params, greedy=True)
  action, _ = actor.act((), OBS[0], jax.random.key(0))
  likeliest = policy.weights(params, OBS[0]).argmax()
  expected = policy.means(params, OBS[0])[likeliest]
  np.testing.assert_array_equal(action, expected)
