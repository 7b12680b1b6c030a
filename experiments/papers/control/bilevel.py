"""PARL (C201): reward learning through the policy that the reward induces.

In the first row the policy chooses among arms, and a pair of draws is labelled,
with exact expectations. In the second one it walks on a grid, pairs of its
trajectories are drawn and labelled, and its gradients are estimated from them.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from experiments.papers.control import policies, protected
from experiments.papers.control.claims import Claim, Results, Row
from rl_jax.control import discovery, implicit
from rl_jax.types import Array

ARMS, TEMPERATURE, RIDGE = 6, 0.3, 0.02
RATE = 1.0
METRIC = 'true reward of the policy, share of the best'
BOTH, DIRECT = 'with the second term', 'reward learning only'

TASKS, PAIRS, STEPS, GAMMA = 16, 8, 10, 0.9  # of the grid
GRID = 'true return of the policy, share of the best'


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

    arms = {BOTH: True, DIRECT: False}
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


def soft(cell_S: Array) -> Array:
  """log pi [S, A] for rewards of the cells that are entered."""
  kernel_SAS, _, _ = protected.room()
  return implicit.soft_policy(
    kernel_SAS, kernel_SAS @ cell_S, GAMMA, TEMPERATURE
  )


def walks(logp_SA: Array, key: Array) -> tuple[Array, Array]:
  """(states, actions) [PAIRS, 2, STEPS + 1] and [PAIRS, 2, STEPS]."""
  kernel_SAS, _, start_S = protected.room()
  after_SA = jnp.argmax(kernel_SAS, axis=2)

  def one(key: Array) -> tuple[Array, Array]:
    def step(state: Array, key: Array) -> tuple[Array, tuple[Array, Array]]:
      action = jax.random.categorical(key, logp_SA[state])
      after = after_SA[state, action]
      return after, (after, action)

    first_key, key = jax.random.split(key)
    first = jax.random.randint(first_key, (), 0, start_S.size)
    keys = jax.random.split(key, STEPS)
    _, (state_T, action_T) = jax.lax.scan(step, first, keys)
    return jnp.concatenate([first[None], state_T]), action_T

  keys = jax.random.split(key, 2 * PAIRS)
  found = jax.vmap(one)(keys)
  return jax.tree.map(lambda x: x.reshape(PAIRS, 2, -1), found)


def queried(cell_S: Array, true_S: Array, whole: bool, key: Array) -> Array:
  """G of new pairs of the policy of cell_S, with their labels; to be derived.

  whole: the gradient has the second term.
  """
  logp_SA = soft(cell_S)
  walk_key, label_key = jax.random.split(key)
  state, action = walks(jax.lax.stop_gradient(logp_SA), walk_key)
  weight_T = GAMMA ** jnp.arange(STEPS)

  def gap(cell_S: Array) -> Array:
    returns_B2 = cell_S[state[..., 1:]] @ weight_T
    return returns_B2[:, 0] - returns_B2[:, 1]

  chance_B = jax.nn.sigmoid(gap(true_S))
  label_B = jax.random.uniform(label_key, (PAIRS,)) < chance_B
  sign_B = jnp.where(label_B, 1.0, -1.0)
  loss_B = -jax.nn.log_sigmoid(sign_B * gap(cell_S))
  logp_B = logp_SA[state[..., :-1], action].sum(axis=(1, 2))
  if not whole:
    logp_B = jax.lax.stop_gradient(logp_B)
  return implicit.sampled(loss_B, logp_B)


def measure_grid(key_S: Array, scale: float) -> Results:
  """Adam on the rewards of cells, from 0; each step labels PAIRS new pairs."""
  few, many = max(1, round(25 * scale)), max(1, round(100 * scale))
  kernel_SAS, _, start_S = protected.room()
  optimizer = optax.adam(0.1)

  def learned(true_S: Array, whole: bool, key: Array) -> Array:
    """The share of the best return after every step, [many]."""
    value = discovery.exact_return(
      kernel_SAS, kernel_SAS @ true_S, start_S, GAMMA
    )
    best, worst = value(jnp.exp(soft(true_S))), value(jnp.full((16, 5), 0.2))

    def step(carry: Any, number: Array) -> tuple[Any, Array]:
      cell_S, opt = carry
      now = jax.random.fold_in(key, number)
      grad_S = jax.grad(queried)(cell_S, true_S, whole, now)
      moves, opt = optimizer.update(grad_S, opt)
      cell_S = cell_S + moves
      gain = value(jnp.exp(soft(cell_S))) - worst
      return (cell_S, opt), gain / (best - worst)

    start = jnp.zeros_like(true_S)
    begin = start, optimizer.init(start)
    return jax.lax.scan(step, begin, jnp.arange(many))[1]

  def one(key: Array) -> dict[str, dict[str, Array]]:
    true_key, draw_key = jax.random.split(key)
    true_KS = jax.random.normal(true_key, (TASKS, start_S.size))
    key_K = jax.random.split(draw_key, TASKS)
    found = {
      name: jax.vmap(lambda true, key, w=whole: learned(true, w, key))(
        true_KS, key_K
      ).mean(axis=0)
      for name, whole in ((BOTH, True), (DIRECT, False))
    }
    return {
      f'{GRID}, {count} queries': {
        name: share_T[step - 1] for name, share_T in found.items()
      }
      for step, count in ((few, 25 * PAIRS), (many, 100 * PAIRS))
    }

  return policies.over_seeds(one, key_S)


ROW = Row(
  'PARL (C201), six arms, exact expectations',
  (
    Claim(
      'after 10 steps the second term has given a higher true reward',
      f'{METRIC}, 10 steps',
      DIRECT,
      BOTH,
    ),
  ),
  measure,
)
GRID_ROW = Row(
  'PARL (C201), grid 4x4, labelled pairs of trajectories',
  (
    Claim(
      'after 200 queries the second term has given a higher true return',
      f'{GRID}, 200 queries',
      DIRECT,
      BOTH,
    ),
  ),
  measure_grid,
)
