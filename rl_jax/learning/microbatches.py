"""Gradients of an objective of the whole minibatch, a microbatch at a time.

  d = d objective(stats) / d stats          statistics of the whole minibatch
  grad = sum_m  vjp(stats_m)(d_m)           strided microbatches, float32

so the size of a microbatch changes memory and never the mathematics.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.learning import statistics as statistics_lib
from rl_jax.pieces.ops import groups
from rl_jax.runtime import layout
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

  params, statistics, total = _by_copies(params, statistics, rows, pieces)

  def accumulate(grads, inputs):
    piece, cotangent = inputs
    _, vjp, _ = jax.vjp(lambda p: statistics(p, piece), params, has_aux=True)
    return _add(grads, *vjp(cotangent)), None

  split = groups.split((rows, cotangents), rows.num_prompts, pieces)
  grads, _ = jax.lax.scan(accumulate, _zeros(params), split)
  return total(grads), loss, metrics


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
  split = groups.split(rows, rows.num_prompts, pieces)
  first = jax.tree.map(lambda x: x[0], split)
  stats, fixed = jax.tree.map(
    lambda x: jnp.zeros((pieces, *x.shape), x.dtype),
    jax.eval_shape(statistics, params, first),
  )
  if logp_old_BT is not None:
    stats[statistics_lib.LOGP] = groups.split(
      logp_old_BT, rows.num_prompts, pieces
    )

  params, statistics, total = _by_copies(params, statistics, rows, pieces)

  def merged(whole):
    return groups.merge(whole, rows.num_prompts)

  def accumulate(carry, inputs):
    grads, whole = carry
    index, piece = inputs
    stats, vjp, fixed = jax.vjp(
      lambda p: statistics(p, piece), params, has_aux=True
    )
    whole = jax.tree.map(
      lambda x, new: x.at[index].set(new), whole, (stats, fixed)
    )
    stats, fixed = whole
    cotangents = jax.grad(
      lambda stats: objective(merged(stats), merged(fixed))[0]
    )(stats)
    mine = jax.tree.map(lambda x: x[index], cotangents)
    return (_add(grads, *vjp(mine)), whole), None

  (grads, whole), _ = jax.lax.scan(
    accumulate, (_zeros(params), (stats, fixed)), (jnp.arange(pieces), split)
  )
  loss, metrics = objective(*merged(whole))
  return total(grads), loss, metrics


def _by_copies(params, statistics, rows, pieces):
  """(params, statistics, from gradients to their sum), a copy a data shard.

  So that microbatches add up where they are, and devices exchange one sum.
  """
  spread = layout.copies(params, rows.num_prompts // pieces)
  if spread is None:
    return params, statistics, lambda grads: grads

  def total(grads):
    return jax.tree.map(lambda g: g.sum(axis=0), grads)

  return spread, layout.by_copies(statistics), total


def _zeros(params):
  return jax.tree.map(lambda p: jnp.zeros(p.shape, jnp.float32), params)


def _add(grads, more):
  return jax.tree.map(lambda a, g: a + g.astype(jnp.float32), grads, more)
