"""Gradients through the policy that a learned reward induces (PARL)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.types import Array

Value = Callable[[Array, Array], Array]  # (upper nu, lower theta) -> scalar


def best_response(
  value: Value, nu: Array, theta: Array, steps: int = 20
) -> Array:
  """argmax_theta value(nu, theta), by Newton's steps from theta.

  value has to be strictly concave in theta, as entropy-regularised returns of
  tabular policies and quadratic penalties are near their maximum.
  """
  slope = jax.grad(value, argnums=1)
  curve = jax.hessian(value, argnums=1)

  def one(theta: Array, _: Any) -> tuple[Array, None]:
    size = theta.size
    hessian = curve(nu, theta).reshape(size, size)
    move = jnp.linalg.solve(hessian, slope(nu, theta).reshape(size))
    return theta - move.reshape(theta.shape), None

  return jax.lax.scan(one, theta, None, length=steps)[0]


def hypergradient(
  upper: Value, value: Value, nu: Array, theta: Array
) -> tuple[Array, Array]:
  """(dG, its direct part) at theta = best_response(value, nu).

    dG = d_nu G - (d^2_{nu theta} V) (d^2_theta V)^{-1} d_theta G

  upper: G(nu, theta), the loss of the reward model on data of the policy theta.
  The direct part is the gradient of ordinary reward learning, which takes the
  policy for fixed. Second derivatives are exact.
  Source: "PARL: A Unified Framework for Policy Alignment", from its abstract
  and from memory; the released estimator was not found.
  """
  direct, outer = jax.grad(upper, argnums=(0, 1))(nu, theta)
  size = theta.size
  hessian = jax.hessian(value, argnums=1)(nu, theta).reshape(size, size)
  solved = jnp.linalg.solve(hessian, outer.reshape(size)).reshape(theta.shape)
  # <d_theta V, v> has the mixed derivatives in v as its gradient in nu.
  _, back = jax.vjp(lambda nu: jax.grad(value, argnums=1)(nu, theta), nu)
  (through,) = back(solved)
  return direct - through, direct


def soft_policy(
  kernel_SAS: Array,
  reward_SA: Array,
  gamma: Array | float,
  temperature: Array | float,
) -> Array:
  """log pi(a | s) of the best E sum gamma^t (r - temperature log pi), [S, A].

    v = temperature logsumexp_a (r + gamma P v) / temperature, for gamma < 1

  It is unique, so no ridge is needed. Its derivatives are those of the fixed
  point (implicit), so that `jax.grad` of a loss of this policy has both terms
  of `hypergradient`.
  """

  def score(value_S: Array) -> Array:
    return (reward_SA + gamma * kernel_SAS @ value_S) / temperature

  def residual(value_S: Array) -> Array:
    after_S = jax.nn.logsumexp(score(value_S), axis=1)
    return temperature * after_S - value_S

  def solve(function: Callable[[Array], Array], value_S: Array) -> Array:
    # Newton's steps are soft policy iteration, which converges from anywhere.
    def one(value_S: Array, _: None) -> tuple[Array, None]:
      slope_SS = jax.jacobian(function)(value_S)
      return value_S - jnp.linalg.solve(slope_SS, function(value_S)), None

    return jax.lax.scan(one, value_S, None, length=20)[0]

  def tangent(linear: Callable[[Array], Array], y_S: Array) -> Array:
    return jnp.linalg.solve(jax.jacobian(linear)(y_S), y_S)

  start_S = jnp.zeros(reward_SA.shape[0])
  value_S = jax.lax.custom_root(residual, start_S, solve, tangent)
  return jax.nn.log_softmax(score(value_S), axis=1)


def sampled(loss_B: Array, logp_B: Array) -> Array:
  """A scalar whose gradient estimates that of G = E_pi loss from B draws.

    d G = mean [d loss + (loss - mean of the others) d log pi(draw)]

  logp_B: of a whole draw, a pair of trajectories say, by the policy that made
  it. Where log pi has no gradient this is ordinary reward learning.
  """
  others_B = (loss_B.sum() - loss_B) / max(1, loss_B.size - 1)
  gain_B = jax.lax.stop_gradient(loss_B - others_B)
  return (loss_B + gain_B * (logp_B - jax.lax.stop_gradient(logp_B))).mean()
