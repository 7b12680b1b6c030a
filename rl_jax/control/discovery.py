"""Lists of policies none of which is beaten under every attack (PROTECTED)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.types import Array


def gap(returns_V: Array, known_KV: Array) -> Array:
  """max_v [J(pi, v) - max_k J(pi_k, v)] of a policy over attacks v.

  The policy is added to the list if it is positive: under some attack it is
  better than all policies of the list. Of one that is in the list it is at
  most 0.
  """
  return (returns_V - known_KV.max(axis=0)).max()


def exact_return(
  kernel_SAS: Array, reward_SA: Array, start_S: Array, gamma: float
) -> Callable[[Array], Array]:
  """The exact return of a policy [S, A], normalised by 1 - gamma.

  J = (1 - gamma) start^T (I - gamma P_pi)^{-1} r_pi
  """

  def value(prob_SA: Array) -> Array:
    step_SS = jnp.einsum('sa,sat->st', prob_SA, kernel_SAS)
    gain_S = (prob_SA * reward_SA).sum(axis=1)
    eye_SS = jnp.eye(gain_S.size)
    value_S = jnp.linalg.solve(eye_SS - gamma * step_SS, gain_S)
    return (1 - gamma) * start_S @ value_S

  return value


def attacked(prob_SA: Array, seen_SS: Array) -> Array:
  """The policy [S, A] that acts on attacked observations [S, O]."""
  return seen_SS @ prob_SA


def discover(
  evaluate: Callable[[Array, Any], Array],
  attacks: Array,
  start_SA: Array,
  *,
  most: int,
  steps: int,
  rate: float,
) -> list[Array]:
  """Logits of policies, each the maximiser of its gap over the earlier ones.

  evaluate: (probabilities [S, A], attack) -> J. attacks: [V, ...], all of them.
  start_SA: logits at which every ascent begins. The first policy maximises the
  worst case. Ends when the gap of the next one is at most 1e-3.
  """

  def returns(logits_SA: Array) -> Array:
    prob_SA = jax.nn.softmax(logits_SA)
    return jax.vmap(lambda attack: evaluate(prob_SA, attack))(attacks)

  @jax.jit
  def ascended(base_V: Array, worst: Array) -> Array:
    def objective(logits_SA: Array) -> Array:
      gain_V = returns(logits_SA) - base_V
      return jnp.where(worst, gain_V.min(), gain_V.max())

    def one(state: Any, _: Any) -> tuple[Any, None]:
      logits_SA, speed = state
      speed = 0.9 * speed + jax.grad(objective)(logits_SA)
      return (logits_SA + rate * speed, speed), None

    begin = start_SA, jnp.zeros_like(start_SA)
    return jax.lax.scan(one, begin, None, length=steps)[0][0]

  none_V = jnp.zeros(jax.tree.leaves(attacks)[0].shape[0])
  found: list[Any] = [ascended(none_V, jnp.bool_(True))]
  while len(found) < most:
    known_KV = jnp.stack([returns(x) for x in found])
    candidate = ascended(known_KV.max(axis=0), jnp.bool_(False))
    if float(np.asarray(gap(returns(candidate), known_KV))) <= 1e-3:
      break
    found.append(candidate)
  return found
