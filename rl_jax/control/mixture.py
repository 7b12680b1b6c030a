"""A mixture of Gaussian experts as a policy, whose router is taught (PMOE).

  pi(a | s) = sum_i w_i(s) N(a; mu_i(s), sigma_i)

The ratio of PPO is that of the whole mixture. A network Q learns the returns of
actions; of one draw of every expert the router learns the best by Q.
Source: "Probabilistic Mixture-of-Experts for Efficient Deep Reinforcement
Learning"; quantumiracle/Popular-RL-Algorithms pmoe_ppo.py (by a digest). Its
clipped value loss is a plain one here.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.control import networks
from rl_jax.control.base import Actor, declared
from rl_jax.pieces.ops.ratios import clipped_surrogate
from rl_jax.types import Array, static

_LOG_2PI = math.log(2 * math.pi)


def _scale(params: Any, mean_KA: Array) -> Array:
  """Logarithms of the deviations, as the means of every state."""
  return jnp.broadcast_to(params['log_std'], mean_KA.shape)


def router_loss(weight: Array, best: Array) -> Array:
  """Mean of (w - v)^2, v one-hot at the best expert; [..., K], [...]."""
  return ((weight - jax.nn.one_hot(best, weight.shape[-1])) ** 2).mean()


@declared
class Mixture:
  """The networks of the policy, of V and of Q, as functions of parameters.

  One expert is PPO with a Gaussian policy, whose router has nothing to learn.
  """

  obs: int = ranged(2, 1, static=True)
  actions: int = ranged(2, 1, static=True)
  experts: int = ranged(5, 1, static=True)
  width: int = ranged(64, 1, static=True)
  log_std: float = -0.5  # at first
  clip: float = ranged(0.2, 0.0, 1.0)
  value_coef: float = ranged(0.5, 0.0)
  router_coef: float = ranged(1.0, 0.0)

  def init(self, key: Array) -> dict[str, Any]:
    """Parameters by name."""
    keys, A, K = jax.random.split(key, 4), self.actions, self.experts
    inputs = {
      'router': (self.obs, K),
      'mean': (self.obs, K * A),
      'value': (self.obs, 1),
      'q': (self.obs + A, 1),
    }
    params: dict[str, Any] = {
      name: networks.mlp(k, (first, self.width, last))
      for k, (name, (first, last)) in zip(keys, inputs.items(), strict=True)
    }
    params['log_std'] = jnp.full((K, A), self.log_std)
    return params

  def weights(self, params: Any, obs: Array) -> Array:
    """Log-weights of the experts, [..., K]."""
    return jax.nn.log_softmax(networks.apply(params['router'], obs))

  def means(self, params: Any, obs: Array) -> Array:
    """[..., K, A]."""
    flat = networks.apply(params['mean'], obs)
    return flat.reshape(*obs.shape[:-1], self.experts, self.actions)

  def log_prob(self, params: Any, obs: Array, action: Array) -> Array:
    """log pi(a | s) of the whole mixture, [...]."""
    mean = self.means(params, obs)
    scale = _scale(params, mean)
    error = (action[..., None, :] - mean) * jnp.exp(-scale)
    each = -0.5 * error**2 - scale - 0.5 * _LOG_2PI
    return jax.nn.logsumexp(
      self.weights(params, obs) + each.sum(axis=-1), axis=-1
    )

  def draws(self, params: Any, obs: Array, key: Array) -> Array:
    """One action of every expert, [..., K, A]."""
    mean = self.means(params, obs)
    noise = jax.random.normal(key, mean.shape)
    return mean + jnp.exp(_scale(params, mean)) * noise

  def value(self, params: Any, obs: Array) -> Array:
    """V(s), [...]."""
    return networks.apply(params['value'], obs)[..., 0]

  def q(self, params: Any, obs: Array, action: Array) -> Array:
    """Q(s, a), [...]."""
    both = jnp.concatenate([obs, action], axis=-1)
    return networks.apply(params['q'], both)[..., 0]

  def best(self, params: Any, obs: Array, key: Array) -> Array:
    """The expert whose draw has the highest Q, int32 [...]."""
    action = self.draws(params, obs, key)
    shape = (*action.shape[:-1], obs.shape[-1])
    each = jnp.broadcast_to(obs[..., None, :], shape)
    return self.q(params, each, action).argmax(axis=-1)

  def loss(self, params: Any, rows: dict[str, Array], key: Array) -> Array:
    """PPO, both critics and the router.

    rows: obs [B, S], action [B, A], and [B]: logp_old, advantage, returns.
    """
    obs, action, target = rows['obs'], rows['action'], rows['returns']
    ratio = jnp.exp(self.log_prob(params, obs, action) - rows['logp_old'])
    policy = clipped_surrogate(ratio, rows['advantage'], self.clip, self.clip)
    value = (self.value(params, obs) - target) ** 2
    q = (self.q(params, obs, action) - target) ** 2
    # Draws and their values teach the router only.
    best = self.best(jax.lax.stop_gradient(params), obs, key)
    router = router_loss(jnp.exp(self.weights(params, obs)), best)
    critics = self.value_coef * value.mean() + q.mean()
    return policy.mean() + critics + self.router_coef * router


@declared
class MixtureActor(Actor):
  """Draws an expert, and its action."""

  mixture: Mixture
  params: Any
  greedy: bool = static(default=False)  # the mean of the likeliest expert

  def act(self, memory: Any, obs: Array, key: Array) -> tuple[Array, Any]:
    """An action [A], which may leave the box of actions."""
    which, draw = jax.random.split(key)
    weight_K = self.mixture.weights(self.params, obs)
    if self.greedy:
      return self.mixture.means(self.params, obs)[weight_K.argmax()], memory
    expert = jax.random.categorical(which, weight_K)
    return self.mixture.draws(self.params, obs, draw)[expert], memory
