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
