"""Natural policy gradients whose critic is fitted on data, too (HNPG).

Policies, transitions and values are tables with a step: pi [H, S, A]. The
critic is fitted from the last step back, on returns of the policy's own
episodes and on recorded transitions:

  Q_h minimises mean_own (Q - G)^2 + mean_data (Q - r - sum_a pi Q_{h+1})^2

Source: "Offline Data Enhanced On-Policy Policy Gradient with Provable
Guarantees"; YifeiZhou02/HNPG trpo.py, main.py (by a digest). There Q is a
network for each step, and the expectation over pi is of drawn actions.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from rl_jax.types import Array

Function = Callable[[Array], Array]  # parameters -> a scalar


class Transitions(NamedTuple):
  """Steps of B episodes, [H, B]."""

  state: Array
  action: Array
  reward: Array
  after: Array


def play(
  kernel_HSAS: Array,
  reward_HSA: Array,
  policy_HSA: Array,
  key: Array,
  count: int,
) -> Transitions:
  """`count` episodes from state 0."""

  def step(state_B: Array, now: tuple[Array, Array, Array, Array]):
    kernel_SAS, reward_SA, policy_SA, key = now
    act_key, move_key = jax.random.split(key)
    action_B = jax.random.categorical(act_key, jnp.log(policy_SA)[state_B])
    after_B = jax.random.categorical(
      move_key, jnp.log(kernel_SAS)[state_B, action_B]
    )
    reward_B = reward_SA[state_B, action_B]
    return after_B, Transitions(state_B, action_B, reward_B, after_B)

  keys_H = jax.random.split(key, policy_HSA.shape[0])
  start_B = jnp.zeros(count, jnp.int32)
  tables = kernel_HSAS, reward_HSA, policy_HSA, keys_H
  return jax.lax.scan(step, start_B, tables)[1]


def fitted_values(
  own: Transitions | None,
  data: Transitions | None,
  policy_HSA: Array,
  ridge: float = 1e-3,
) -> Array:
  """Q [H, S, A] by least squares; ridge: weight of 0 in every cell.

  Without data it is a Monte Carlo critic, without own fitted Q evaluation.
  """
  H, S, A = policy_HSA.shape

  def sums(state_B: Array, action_B: Array, target_B: Array):
    """(weights, weighted targets) [S, A] of a mean squared error."""
    each = jnp.full(target_B.shape, 1 / target_B.size)
    zero_SA = jnp.zeros((S, A))
    place = state_B, action_B
    return zero_SA.at[place].add(each), zero_SA.at[place].add(each * target_B)

  def back(carry: tuple[Array, Array], now: tuple) -> tuple:
    value_S, return_B = carry
    own, data, policy_SA = now
    weight_SA, total_SA = jnp.full((S, A), ridge), jnp.zeros((S, A))
    if own is not None:
      return_B = return_B + own.reward
      more = sums(own.state, own.action, return_B)
      weight_SA, total_SA = weight_SA + more[0], total_SA + more[1]
    if data is not None:
      target_B = data.reward + value_S[data.after]
      more = sums(data.state, data.action, target_B)
      weight_SA, total_SA = weight_SA + more[0], total_SA + more[1]
    q_SA = total_SA / weight_SA
    return ((policy_SA * q_SA).sum(axis=1), return_B), q_SA

  count = 0 if own is None else own.reward.shape[1]
  start = jnp.zeros(S), jnp.zeros(count)
  return jax.lax.scan(back, start, (own, data, policy_HSA), reverse=True)[1]


def advantages(own: Transitions, value_HS: Array, lam: float = 0.97) -> Array:
  """GAE without discount, [H, B]; V after the last step is 0."""
  after_HS = jnp.concatenate([value_HS[1:], jnp.zeros_like(value_HS[:1])])
  pick = jax.vmap(lambda value_S, state_B: value_S[state_B])
  delta_HB = own.reward + pick(after_HS, own.after) - pick(value_HS, own.state)

  def back(later_B: Array, delta_B: Array) -> tuple[Array, Array]:
    now_B = delta_B + lam * later_B
    return now_B, now_B

  start_B = jnp.zeros(delta_HB.shape[1])
  return jax.lax.scan(back, start_B, delta_HB, reverse=True)[1]


def conjugate_gradients(
  product: Callable[[Array], Array], b: Array, steps: int
) -> Array:
  """x with product(x) = b, after so many steps from 0."""

  def one(carry: tuple[Array, Array, Array], _: None):
    x, rest, along = carry
    moved = product(along)
    size = jnp.vdot(rest, rest)
    share = size / jnp.maximum(jnp.vdot(along, moved), 1e-30)
    x, left = x + share * along, rest - share * moved
    turn = jnp.vdot(left, left) / jnp.maximum(size, 1e-30)
    return (x, left, left + turn * along), None

  start = jnp.zeros_like(b), b, b
  return jax.lax.scan(one, start, length=steps)[0][0]


def natural_step(
  surrogate: Function,
  divergence: Function,
  theta: Array,
  *,
  size: float = 0.01,
  damping: float = 0.1,
) -> Array:
  """theta after one step of about `size` in the mean KL divergence.

    x = (F + damping)^-1 d surrogate,  step = sqrt(2 size / x^T (F + damping) x)

  F is the curvature of divergence, which is 0 at theta. The step is halved up
  to ten times, from the whole one on, until the surrogate gains more than a
  tenth of what its slope promises; if it never does, theta stays.
  """
  slope = jax.grad(surrogate)(theta)

  def product(v: Array) -> Array:
    return jax.jvp(jax.grad(divergence), (theta,), (v,))[1] + damping * v

  x = conjugate_gradients(product, slope, 10)
  curve = jnp.maximum(jnp.vdot(x, product(x)), 1e-30)
  whole = jnp.sqrt(2 * size / curve) * x
  promised, now = jnp.vdot(slope, whole), surrogate(theta)

  def gain(half: Array) -> Array:
    return surrogate(theta + 0.5**half * whole) - now

  half_K = jnp.arange(11.0)
  gain_K = jax.lax.map(gain, half_K)
  good_K = (gain_K > 0.1 * 0.5**half_K * promised) & (gain_K > 0)
  chosen = 0.5 ** half_K[jnp.argmax(good_K)]
  return theta + jnp.where(good_K.any(), chosen, 0.0) * whole
