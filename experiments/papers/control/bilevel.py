"""PARL (C201): reward learning through the policy that the reward induces.

The policy chooses among arms, and a pair of draws is labelled, with exact
expectations; there is no grid of states, whose pairs would be trajectories.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from experiments.papers.control import policies
from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control import implicit
from rl_jax.types import Array

ARMS, TEMPERATURE, RIDGE = 6, 0.3, 0.02
RATE = 1.0
METRIC = 'true reward of the policy, share of the best'


def value(nu: Array, theta: Array) -> Array:
  """Entropy-regularised expected reward of softmax(theta) under nu.

  The ridge makes theta unique: a constant in all logits changes nothing.
  """
  logp = jax.nn.log_softmax(theta)
  p = jnp.exp(logp)
  return (p * (nu - TEMPERATURE * logp)).sum() - RIDGE * (theta**2).sum()


def preferences(true: Array) -> Callable[[Array, Array], Array]:
  """G: expected cross-entropy of labels on pairs of draws of the policy."""
  label = jax.nn.sigmoid(true[:, None] - true[None])

  def upper(nu: Array, theta: Array) -> Array:
    p = jax.nn.softmax(theta)
    gap = nu[:, None] - nu[None]
    loss = -label * jax.nn.log_sigmoid(gap)
    loss -= (1 - label) * jax.nn.log_sigmoid(-gap)
    return p @ loss @ p

  return upper


def measure(key_S: Array, scale: float) -> Results:
  """After few and after many steps on nu, whose start is 0."""
  few, many = max(1, round(10 * scale)), max(1, round(100 * scale))

  def one(key: Array) -> dict[str, dict[str, Array]]:
    true_TK = 2 * jax.random.normal(key, (64, ARMS))

    def learned(true: Array, whole: bool) -> Array:
      def step(nu: Array, _: None) -> tuple[Array, Array]:
        theta = implicit.best_response(value, nu, nu / TEMPERATURE, 8)
        total, direct = implicit.hypergradient(
          preferences(true), value, nu, theta
        )
        nu = nu - RATE * (total if whole else direct)
        p = jax.nn.softmax(nu / TEMPERATURE)
        best, mean = true.max(), true.mean()
        return nu, (p @ true - mean) / (best - mean)

      return jax.lax.scan(step, jnp.zeros(ARMS), None, length=many)[1]

    arms = {'with the second term': True, 'reward learning only': False}
    found = {
      name: jax.vmap(lambda true, w=whole: learned(true, w))(true_TK).mean(0)
      for name, whole in arms.items()
    }
    return {
      f'{METRIC}, {count} steps': {
        name: share_T[count - 1] for name, share_T in found.items()
      }
      for count in (few, many)
    }

  return policies.over_seeds(one, key_S)


ROW = Row(
  'PARL (C201), six arms, exact expectations',
  (
    Claim(
      'after 10 steps the second term has given a higher true reward',
      f'{METRIC}, 10 steps',
      'reward learning only',
      'with the second term',
    ),
  ),
  measure,
)
