"""A small autoencoder of images, whose codes describe behaviour (STAX)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from rl_jax.control import networks
from rl_jax.types import Array

BATCH = 128


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


class Epochs(NamedTuple):
  """A training that may end early."""

  params: Any
  opt: Any
  epoch: Array
  least: Array  # validation error before the last rises
  rises: Array  # of the validation error, in succession


def fit(
  params: Any, image_NP: Array, on_N: Array, key: Array, epochs: int
) -> Any:
  """Parameters after Adam (1e-3) on four fifths of the images that are on.

  L = mean squared error, in batches of BATCH that are drawn. Ends after so many
  epochs, or when the error of the other images has risen four times in
  succession.
  """
  optimizer = optax.adam(1e-3)
  split_key, key = jax.random.split(key)
  train_N = (on_N > 0) & (jax.random.uniform(split_key, on_N.shape) < 0.8)
  valid_N = (on_N > 0) & ~train_N
  order_N, count = jnp.argsort(~train_N), train_N.sum()
  batches = max(1, round(0.8 * len(on_N) / BATCH))

  def loss(params: Any, batch_BP: Array) -> Array:
    return encoded(params, batch_BP)[1].mean()

  def one(state: Any, key: Array) -> tuple[Any, None]:
    params, opt = state
    row_B = order_N[jax.random.randint(key, (BATCH,), 0, count)]
    grads = jax.grad(loss)(params, image_NP[row_B])
    moves, opt = optimizer.update(grads, opt)
    return (optax.apply_updates(params, moves), opt), None

  def epoch(state: Epochs) -> Epochs:
    keys = jax.random.split(jax.random.fold_in(key, state.epoch), batches)
    (params, opt), _ = jax.lax.scan(one, (state.params, state.opt), keys)
    error_N = encoded(params, image_NP)[1]
    error = (error_N * valid_N).sum() / jnp.maximum(valid_N.sum(), 1)
    rises = jnp.where(error > state.least, state.rises + 1, 0)
    least = jnp.where(error > state.least, state.least, error)
    return Epochs(params, opt, state.epoch + 1, least, rises)

  start = Epochs(
    params,
    optimizer.init(params),
    jnp.int32(0),
    jnp.float32(jnp.inf),
    jnp.int32(0),
  )
  return jax.lax.while_loop(
    lambda state: (state.epoch < epochs) & (state.rises < 4), epoch, start
  ).params
