"""Lagrange multipliers that hold quantities at thresholds."""

import jax
import jax.numpy as jnp

from rl_jax.pieces.ops.masking import safe_sqrt
from rl_jax.types import Array

SQUASHES = {'sigmoid': jax.nn.sigmoid, 'tanh': jnp.tanh, 'none': lambda x: x}


def initial(count: int) -> dict[str, Array]:
  """All multipliers 0, without momentum."""
  zeros = jnp.zeros(count)
  return {'multipliers': zeros, 'momentum': zeros}


def stepped(
  state: dict[str, Array],
  violation_K: Array,
  squash: str,
  *,
  learning_rate: Array | float,
  momentum: Array | float,
  max_gradient: Array | float,
) -> dict[str, Array]:
  """One descent step on sum_i squash(lambda_i) violation_i.

  violation: mean minus threshold. max_gradient bounds the norm of the gradient.
  With squash 'none' multipliers stay at 0 or above.
  """
  held_K, phi = state['multipliers'], SQUASHES[squash]
  gradient_K = jax.grad(lambda x_K: phi(x_K) @ violation_K)(held_K)
  norm = safe_sqrt((gradient_K**2).sum())
  gradient_K *= max_gradient / jnp.maximum(norm, max_gradient)
  momentum_K = momentum * state['momentum'] + gradient_K
  held_K -= learning_rate * momentum_K
  if squash == 'none':
    held_K = jnp.maximum(held_K, 0.0)
  return {'multipliers': held_K, 'momentum': momentum_K}
