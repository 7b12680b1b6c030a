"""Robust least-squares value iteration around a reference policy (DR-RPO).

Transitions are P_h(s' | s, a) = sum_i phi_i(s, a) mu_hi(s') with known features
phi. Every factor mu_hi may move within a total-variation ball of radius rho_i.

Source: "Policy Regularized Distributionally Robust MDPs with Linear Function
Approximation", reconstructed from its abstract; estimator and bonus are those
of the same group's Robust-Regularized-Pessimistic-Value-Iteration, with the
sign of the bonus turned from pessimism to optimism.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.control.base import declared
from rl_jax.types import Array


def worst_means(
  weight_DS: Array, value_S: Array, rho_D: Array, least: float | Array = 0.0
) -> Array:
  """max_a sum_s w_i(s) min(V(s), a) - rho_i (a - least), [D].

  Of probabilities w_i it is the smallest mean of V within total variation rho_i
  of w_i: a mass of rho_i moves from the largest values to `least`, which is the
  smallest value of V, or that of a state of failure. The function is piecewise
  linear in a, so that a is one of the values or `least`.
  """
  cut_C = jnp.append(value_S, least)
  cut_SC = jnp.minimum(value_S[:, None], cut_C[None])
  price_DC = jnp.outer(rho_D, cut_C - least)
  return (weight_DS @ cut_SC - price_DC).max(axis=1)


def soft_means(weight_DS: Array, value_S: Array, cost: float, top: float):
  """-c log max(sum_s w_i(s) exp(-V(s) / c), exp(-top / c)), [D].

  In place of a ball: nature pays c times the KL divergence of its factors.
  """
  mean_D = weight_DS @ jnp.exp(-value_S / cost)
  return -cost * jnp.log(jnp.maximum(mean_D, jnp.exp(-top / cost)))


def soft_policy(
  q_SA: Array, reference_SA: Array, eta: float | Array
) -> tuple[Array, Array]:
  """(pi proportional to pi_ref exp(Q / eta), eta log sum pi_ref exp(Q / eta)).

  The greedy policy in the support of pi_ref as eta falls to 0, and pi_ref as
  it grows.
  """
  logit_SA = jnp.log(reference_SA) + q_SA / eta
  value_S = eta * jax.nn.logsumexp(logit_SA, axis=1)
  return jax.nn.softmax(logit_SA), value_S


class Memory(NamedTuple):
  """The statistics of episodes, of every step h."""

  inverse_HDD: Array  # of Lam = ridge I + sum phi phi^T
  moved_HDS: Array  # sum of phi, by the next state

  def with_step(self, phi_HD: Array, arrived_HS: Array) -> 'Memory':
    """With one step of every h: Lam^-1 changes by Sherman and Morrison."""
    turned_HD = jnp.einsum('hde,he->hd', self.inverse_HDD, phi_HD)
    scale_H = 1 + (phi_HD * turned_HD).sum(axis=1)
    outer_HDD = turned_HD[:, :, None] * turned_HD[:, None]
    return Memory(
      self.inverse_HDD - outer_HDD / scale_H[:, None, None],
      self.moved_HDS + phi_HD[:, :, None] * arrived_HS[:, None],
    )


@declared
class RobustIteration:
  """One backward pass over the horizon, from what was seen so far.

    Lam = ridge I + sum phi phi^T,  nu_i = worst mean of V_{h+1}
    Q_h = clip(r + phi^T nu + bonus sum_i phi_i sqrt((Lam^-1)_ii), 0, top)

  rho_D: the radius of every factor; 0 is ordinary least-squares value
  iteration. top: the largest return. Rewards are known, 0 at least, and a state
  of failure has value 0.
  """

  phi_SAD: Array
  reward_SA: Array
  reference_SA: Array
  rho_D: Array
  horizon: int = ranged(3, 1, static=True)
  top: float = ranged(1.0, 0.0, open_low=True)
  eta: float = ranged(0.05, 0.0, open_low=True)
  ridge: float = ranged(0.1, 0.0, open_low=True)
  bonus: float = ranged(1.0, 0.0)

  def start(self) -> Memory:
    """Before the first episode."""
    S, _, D = self.phi_SAD.shape
    inverse_DD = jnp.eye(D) / self.ridge
    return Memory(
      jnp.broadcast_to(inverse_DD, (self.horizon, D, D)),
      jnp.zeros((self.horizon, D, S)),
    )

  def plan(self, memory: Memory) -> tuple[Array, Array]:
    """(policy [H, S, A], values [H, S])."""

    def back(value_S: Array, seen: tuple[Array, Array]):
      inverse_DD, moved_DS = seen
      nu_D = worst_means(inverse_DD @ moved_DS, value_S, self.rho_D)
      width_D = jnp.sqrt(jnp.diagonal(inverse_DD))
      q_SA = self.reward_SA + self.phi_SAD @ (nu_D + self.bonus * width_D)
      q_SA = jnp.clip(q_SA, 0.0, self.top)
      policy_SA, value_S = soft_policy(q_SA, self.reference_SA, self.eta)
      return value_S, (policy_SA, value_S)

    start_S = jnp.zeros(self.phi_SAD.shape[0])
    return jax.lax.scan(back, start_S, tuple(memory), reverse=True)[1]

  def episode(
    self, memory: Memory, kernel_SAS: Array, start: Array, key: Array
  ) -> Memory:
    """The memory after an episode of the planned policy."""
    policy_HSA, _ = self.plan(memory)

    def step(state: Array, now: tuple[Array, Array]):
      policy_SA, key = now
      act_key, move_key = jax.random.split(key)
      action = jax.random.categorical(act_key, jnp.log(policy_SA[state]))
      after = jax.random.categorical(
        move_key, jnp.log(kernel_SAS[state, action])
      )
      arrived_S = jax.nn.one_hot(after, kernel_SAS.shape[0])
      return after, (self.phi_SAD[state, action], arrived_S)

    keys_H = jax.random.split(key, self.horizon)
    _, seen = jax.lax.scan(step, start, (policy_HSA, keys_H))
    return memory.with_step(*seen)


def expected_return(
  policy_HSA: Array, kernel_SAS: Array, reward_SA: Array, start: int
) -> Array:
  """The exact return of a policy from a state."""

  def back(value_S: Array, policy_SA: Array) -> tuple[Array, None]:
    q_SA = reward_SA + kernel_SAS @ value_S
    return (policy_SA * q_SA).sum(axis=1), None

  zero_S = jnp.zeros(kernel_SAS.shape[0])
  return jax.lax.scan(back, zero_S, policy_HSA, reverse=True)[0][start]
