"""Rewards that are learned so that what optimises them earns the primary one.

  r_phi = phi_1(s) + phi_2 r_primary + phi_3 r_auxiliary
  theta*(phi): d_theta V(phi, theta) = 0, of a regularised return V of r_phi
  max_phi J(theta*(phi)), J the primary return

Source: "Behavior Alignment via Reward Function Optimization", reconstructed
from its abstract and from memory: regulariser, number of inner steps and how
the inverse is approximated are ours.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.types import Array

Return = Callable[[Any, Any], Array]  # (phi, theta) -> V, to be maximised


def blended(phi: Array, primary_SA: Array, auxiliary_SA: Array) -> Array:
  """r_phi [S, A]; phi: a number for each state, then phi_2 and phi_3.

  phi = (0, ..., 0, 1, 0) is the primary reward.
  """
  of_state_S, (first, second) = phi[:-2], phi[-2:]
  return of_state_S[:, None] + first * primary_SA + second * auxiliary_SA


def implicit_gradient(
  primary: Callable[[Any], Array],
  value: Return,
  phi: Any,
  theta: Any,
  *,
  rate: float,
  terms: int,
) -> Any:
  """d J(theta*(phi)) / d phi at theta, near a maximum of value(phi, .).

    -(d_phi d_theta V)^T H^-1 g,  H = d^2_theta V,  g = d_theta J
    -H^-1 g is about rate sum_{k=0}^{terms} (I + rate H)^k g

  The series converges to the inverse for 0 > rate H > -2. With terms = 0 and
  rate = 1 / lambda it is the diagonal approximation H = -lambda I of a penalty
  lambda / 2 |theta|^2. Only products with H are computed, and theta may be a
  pytree.
  """
  slope = jax.grad(value, argnums=1)

  def times_hessian(v: Any) -> Any:
    return jax.jvp(lambda theta: slope(phi, theta), (theta,), (v,))[1]

  def one(carry: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], None]:
    power, total = carry
    power = jax.tree.map(
      lambda v, hv: v + rate * hv, power, times_hessian(power)
    )
    return (power, jax.tree.map(jnp.add, total, power)), None

  g = jax.grad(primary)(theta)
  (_, total), _ = jax.lax.scan(one, (g, g), None, length=terms)
  _, back = jax.vjp(lambda phi: slope(phi, theta), phi)
  (through,) = back(jax.tree.map(lambda x: rate * x, total))
  return through


def one_step_gradient(
  primary: Callable[[Any], Array],
  value: Return,
  phi: Any,
  theta: Any,
  rate: float,
) -> Any:
  """d J(theta') / d phi, theta' = theta + rate d_theta V(phi, theta).

  Of V = sum_j phi_j J_j it is rate <d J(theta'), d J_j(theta)>: a component
  counts more where its gradient points to more of the primary return. A group
  of samples gives each of these gradients, so that it fits any policy.
  """
  slope = jax.grad(value, argnums=1)

  def after(phi: Any) -> Any:
    return jax.tree.map(lambda t, g: t + rate * g, theta, slope(phi, theta))

  return jax.grad(lambda phi: primary(after(phi)))(phi)
