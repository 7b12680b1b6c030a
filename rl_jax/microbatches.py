"""Gradients of an objective of the whole minibatch, a microbatch at a time.

  d = d objective(stats) / d stats          statistics of the whole minibatch
  grad = sum_m  vjp(stats_m)(d_m)           strided microbatches, float32

so the size of a microbatch changes memory and never the mathematics.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax import scoring
from rl_jax.types import Array, Metrics, Trajectories

# (params, rows) -> (differentiated statistics, those that only metrics read).
Statistics = Callable[[Any, Trajectories], tuple[dict, dict]]
# (differentiated statistics, the others) -> (loss, metrics), whole minibatch.
Objective = Callable[[dict, dict], tuple[Array, Metrics]]


def two_passes(
  params: Any,
  statistics: Statistics,
  objective: Objective,
  rows: Trajectories,
  pieces: int,
  known: tuple[dict, dict],
) -> tuple[Any, Array, Metrics]:
  """(gradient, loss, metrics) for every objective; known: all statistics."""
  (loss, metrics), cotangents = jax.value_and_grad(objective, has_aux=True)(
    *known
  )

  def accumulate(grads, inputs):
    piece, cotangent = inputs
    _, vjp, _ = jax.vjp(lambda p: statistics(p, piece), params, has_aux=True)
    return _add(grads, *vjp(cotangent)), None

  split = scoring.split_groups((rows, cotangents), rows.num_prompts, pieces)
  grads, _ = jax.lax.scan(accumulate, _zeros(params), split)
  return grads, loss, metrics


def one_pass(
  params: Any,
  statistics: Statistics,
  objective: Objective,
  rows: Trajectories,
  pieces: int,
  logp_old_BT: Array | None,
) -> tuple[Any, Array, Metrics]:
  """The same, if a token's cotangent depends on its own statistics alone.

  Each microbatch puts its statistics among those of the whole minibatch and
  takes its cotangents from there: no forward pass comes before. Until then
  log-probs are the old ones, which keeps ratios finite.
  """
  split = scoring.split_groups(rows, rows.num_prompts, pieces)
  first = jax.tree.map(lambda x: x[0], split)
  stats, fixed = jax.tree.map(
    lambda x: jnp.zeros((pieces, *x.shape), x.dtype),
    jax.eval_shape(statistics, params, first),
  )
  if logp_old_BT is not None:
    stats[scoring.LOGP] = scoring.split_groups(
      logp_old_BT, rows.num_prompts, pieces
    )

  def merged(whole):
    return scoring.merge_groups(whole, rows.num_prompts)

  value_and_grad = jax.value_and_grad(
    lambda *whole: objective(*map(merged, whole)), has_aux=True
  )

  def accumulate(carry, inputs):
    (grads, whole, _), (index, piece) = carry, inputs
    stats, vjp, fixed = jax.vjp(
      lambda p: statistics(p, piece), params, has_aux=True
    )
    whole = jax.tree.map(
      lambda x, new: x.at[index].set(new), whole, (stats, fixed)
    )
    found, cotangents = value_and_grad(*whole)
    mine = jax.tree.map(lambda x: x[index], cotangents)
    return (_add(grads, *vjp(mine)), whole, found), None

  # Loss and metrics are those after the last microbatch; taken behind the loop,
  # the objective would be compiled once more.
  found, _ = jax.eval_shape(value_and_grad, stats, fixed)
  (grads, _, (loss, metrics)), _ = jax.lax.scan(
    accumulate,
    (_zeros(params), (stats, fixed), jax.tree.map(_zero, found)),
    (jnp.arange(pieces), split),
  )
  return grads, loss, metrics


def _zero(x):
  return jnp.zeros(x.shape, x.dtype)


def _zeros(params):
  return jax.tree.map(lambda p: jnp.zeros(p.shape, jnp.float32), params)


def _add(grads, more):
  return jax.tree.map(lambda a, g: a + g.astype(jnp.float32), grads, more)
