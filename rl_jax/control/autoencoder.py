"""A small autoencoder of images, whose codes describe behaviour (STAX)."""

from typing import Any

import jax
import jax.numpy as jnp
import optax

from rl_jax.control import networks
from rl_jax.types import Array


def init(key: Array, pixels: int, code: int, hidden: int = 32) -> Any:
  """(encoder, decoder): pixels - hidden - code - hidden - pixels."""
  first, second = jax.random.split(key)
  return (
    networks.mlp(first, (pixels, hidden, code)),
    networks.mlp(second, (code, hidden, pixels)),
  )


def encoded(params: Any, image_NP: Array) -> tuple[Array, Array]:
  """(codes [N, D], mean squared errors of the images [N])."""
  code_ND = networks.apply(params[0], image_NP)
  rebuilt_NP = networks.apply(params[1], code_ND)
  return code_ND, ((rebuilt_NP - image_NP) ** 2).mean(axis=1)


def fit(
  params: Any, image_NP: Array, on_N: Array, key: Array, steps: int
) -> Any:
  """Parameters after steps of Adam (1e-3) on batches of 64 images that are on.

  L = mean squared error of the images.
  """
  optimizer = optax.adam(1e-3)
  logits_N = jnp.where(on_N > 0, 0.0, -jnp.inf)

  def loss(params: Any, batch_BP: Array) -> Array:
    return encoded(params, batch_BP)[1].mean()

  def one(state: Any, number: Array) -> tuple[Any, None]:
    params, opt = state
    draw = jax.random.fold_in(key, number)
    row_B = jax.random.categorical(draw, logits_N, shape=(64,))
    grads = jax.grad(loss)(params, image_NP[row_B])
    moves, opt = optimizer.update(grads, opt)
    return (optax.apply_updates(params, moves), opt), None

  start = params, optimizer.init(params)
  return jax.lax.scan(one, start, jnp.arange(steps))[0][0]
