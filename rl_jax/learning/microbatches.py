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
from rl_jax.types import LEARNED, Array, Trajectories

Stats = dict[str, Array]
# (params, rows) -> (differentiated statistics, those that only metrics read).
Statistics = Callable[[Any, Trajectories], tuple[Stats, Stats]]
# (differentiated statistics, the others, parameters that pieces learn) ->
# (loss, anything beside it), of the whole minibatch.
Objective = Callable[[Stats, Stats, dict[str, Any]], tuple[Array, Any]]


def two_passes(
  params: Any,
  statistics: Statistics,
  objective: Objective,
  rows: Trajectories,
  count: int,
  known: tuple[Stats, Stats],
) -> tuple[Any, Array, Any]:
  """(gradient, loss, aux) for every objective; known: all statistics."""
  params, learned = split_learned(params)
  (loss, aux), (cotangents, of_learned) = jax.value_and_grad(
    objective, argnums=(0, 2), has_aux=True
  )(*known, learned)

  params, statistics, total = _by_copies(params, statistics, rows, count)

  def accumulate(grads: Any, inputs: Any):
    microbatch, cotangent = inputs
    _, vjp, _ = jax.vjp(
      lambda p: statistics(p, microbatch), params, has_aux=True
    )
    return _add(grads, *vjp(cotangent)), None

  split = groups.split((rows, cotangents), rows.num_prompts, count)
  grads, _ = jax.lax.scan(accumulate, _zeros(params), split)
  return {**total(grads), **_learned_tree(of_learned)}, loss, aux


def one_pass(
  params: Any,
  statistics: Statistics,
  objective: Objective,
  rows: Trajectories,
  count: int,
  logp_old_BT: Array | None,
) -> tuple[Any, Array, Any]:
  """The same, if cotangents depend only on statistics of their microbatch.

  Each microbatch puts its statistics among those of the whole minibatch and
  takes its cotangents from there: no forward pass comes before. Until then
  log-probs are the old ones, which keeps ratios finite.
  """
  params, learned = split_learned(params)
  split = groups.split(rows, rows.num_prompts, count)
  first = jax.tree.map(lambda x: x[0], split)
  stats, fixed = jax.tree.map(
    lambda x: jnp.zeros((count, *x.shape), x.dtype),
    jax.eval_shape(statistics, params, first),
  )
  if logp_old_BT is not None:
    stats[statistics_lib.LOGP] = groups.split(
      logp_old_BT, rows.num_prompts, count
    )

  params, statistics, total = _by_copies(params, statistics, rows, count)

  def merged(whole: Array):
    return groups.merge(whole, rows.num_prompts)

  def accumulate(carry: Any, inputs: Any):
    grads, whole = carry
    index, microbatch = inputs
    stats, vjp, fixed = jax.vjp(
      lambda p: statistics(p, microbatch), params, has_aux=True
    )
    whole = jax.tree.map(
      lambda x, new: x.at[index].set(new), whole, (stats, fixed)
    )
    stats, fixed = whole
    cotangents = jax.grad(
      lambda stats: objective(merged(stats), merged(fixed), learned)[0]
    )(stats)
    mine = jax.tree.map(lambda x: x[index], cotangents)
    return (_add(grads, *vjp(mine)), whole), None

  (grads, whole), _ = jax.lax.scan(
    accumulate, (_zeros(params), (stats, fixed)), (jnp.arange(count), split)
  )
  stats, fixed = merged(whole)
  (loss, aux), of_learned = jax.value_and_grad(
    lambda learned: objective(stats, fixed, learned), has_aux=True
  )(learned)
  return {**total(grads), **_learned_tree(of_learned)}, loss, aux


def split_learned(params: Any) -> tuple[Any, dict[str, Any]]:
  """(parameters of the model, those that pieces learn, by path)."""
  model = {name: tree for name, tree in params.items() if name != LEARNED}
  return model, params.get(LEARNED, {})


def _learned_tree(of_learned: dict[str, Any]):
  return {LEARNED: of_learned} if of_learned else {}


def _by_copies(
  params: Any, statistics: Statistics, rows: Trajectories, count: int
):
  """(params, statistics, from gradients to their sum), a copy a data shard.

  So that microbatches add up where they are, and devices exchange one sum.
  """
  spread = layout.copies(params, rows.num_prompts // count)
  if spread is None:
    return params, statistics, lambda grads: grads

  def total(grads: Any):
    return jax.tree.map(lambda g: g.sum(axis=0), grads)

  return spread, layout.by_copies(statistics), total


def _zeros(params: Any):
  return jax.tree.map(lambda p: jnp.zeros(p.shape, jnp.float32), params)


def _add(grads: Any, more: Any):
  return jax.tree.map(lambda a, g: a + g.astype(jnp.float32), grads, more)
