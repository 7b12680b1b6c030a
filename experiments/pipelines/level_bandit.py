"""REINFORCE on the two levels of a conformal decision."""

from collections.abc import Callable
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

LOW = np.array([0.75, 0.01])  # of (alpha, beta)
HIGH = np.array([0.9, 0.05])
HIDDEN = 64
STEP = 0.005
LEARNING_RATE = 1e-3
LEAST_STD = 1e-3


def tune(
  cost: Callable[[float, float], float], *, epochs: int, seed: int
) -> tuple[np.ndarray, list[float]]:
  """(alpha, beta) of the last epoch, and the cost of every epoch.

    step ~ N(mean, std) of a network of (alpha, beta),
    (alpha, beta) += .005 step, clipped to [.75, .9] x [.01, .05],
    loss = -sum log N(step) sg(-cost), without a baseline

  One epoch is one step. cost is a function of (alpha, beta); they begin in the
  middle of their ranges.
  Source: as conformal.decision_weights, src/models/policy_network.py and
  src/training/train_policy.py, by the specification; std is the softplus of an
  output plus .001, ours.
  """
  keys = jax.random.split(jax.random.key(seed), epochs + 1)
  params = _init(keys[0])
  optimizer = optax.adam(LEARNING_RATE)
  state = optimizer.init(params)

  @jax.jit
  def update(params, state, levels, step, cost):
    grads = jax.grad(policy_loss)(params, levels, step, cost)
    changes, state = optimizer.update(grads, state)
    return optax.apply_updates(params, changes), state

  levels, costs = (LOW + HIGH) / 2, []
  for key in keys[1:]:
    step = _draw(params, levels, key)
    after = np.clip(levels + STEP * np.asarray(step), LOW, HIGH)
    costs.append(cost(*after))
    params, state = update(params, state, levels, step, costs[-1])
    levels = after
  return levels, costs


def policy_loss(params: Any, levels: Any, step: Any, cost: Any) -> jax.Array:
  """-sum log N(step; mean, std) sg(-cost)."""
  mean, std = distribution(params, levels)
  logp = jax.scipy.stats.norm.logpdf(step, mean, std).sum()
  return -logp * jax.lax.stop_gradient(-cost)


def distribution(params: Any, levels: Any) -> tuple[jax.Array, jax.Array]:
  """(mean, std) of the step of each level."""
  hidden = jax.nn.relu(levels @ params['in'] + params['in_bias'])
  out = hidden @ params['out'] + params['out_bias']
  return out[:2], jax.nn.softplus(out[2:]) + LEAST_STD


def _init(key):
  key_in, key_out = jax.random.split(key)
  normal = functools.partial(jax.random.normal, dtype=jnp.float32)
  return {
    'in': normal(key_in, (2, HIDDEN)) / np.sqrt(2),
    'in_bias': jnp.zeros(HIDDEN),
    'out': normal(key_out, (HIDDEN, 4)) / np.sqrt(HIDDEN),
    'out_bias': jnp.zeros(4),
  }


@jax.jit
def _draw(params, levels, key):
  mean, std = distribution(params, levels)
  return mean + std * jax.random.normal(key, (2,))
