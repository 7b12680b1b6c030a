"""One optimizer step on a minibatch of groups, exact for every loss.

The objective reads statistics of the whole minibatch; how its gradient is
taken in microbatches is in microbatches.py.
"""

import dataclasses
import functools
from typing import Any

from flax import struct
import jax
import jax.numpy as jnp
import optax

from rl_jax import randomness, types
from rl_jax.checks import INT32, checked, ranged
from rl_jax.learning import microbatches, token_log
from rl_jax.learning import objective as objective_lib
from rl_jax.learning import score as score_lib
from rl_jax.learning import statistics as statistics_lib
from rl_jax.learning.statistics import Forward, Needs
from rl_jax.method import LOSS_SLOTS, Method
from rl_jax.pieces.ops import groups
from rl_jax.types import Array, Metrics, TrainState, Trajectories


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class UpdateConfig:
  """The optimizer steps of a rollout; counts are prompts (groups).

  minibatch_prompts: one optimizer step each; None is the whole rollout.
  minibatch_rows: in its place, so many responses of any groups, shuffled one by
    one as OpenRLHF and Oat do, for losses that read no other rows. Advantages
    are those of whole groups. microbatch_rows is then how many of these a
    microbatch has, and microbatch_prompts is of scoring only.
  microbatch_prompts: memory only, never mathematics; None is one piece.
  microbatch_rows: rows of each of these groups that are in a microbatch, for
    long responses; None is the whole group, whose prompt is then computed once.
    Memory only, never mathematics.
  pack: where the responses of an iteration are at most half full, all groups
    alike, padding takes part in attention only. Memory and speed only, never
    mathematics; a second program is compiled when it is first used.
  """

  epochs: int = ranged(1, 1, INT32)
  minibatch_prompts: int | None = ranged(None, 1)
  minibatch_rows: int | None = ranged(None, 1)
  microbatch_prompts: int | None = ranged(None, 1)
  microbatch_rows: int | None = ranged(None, 1)
  pack: bool = True


class Batch(struct.PyTreeNode, kw_only=True):
  """The data of all optimizer steps of one rollout.

  frozen: parameters that are not trained, and the named policies. traj: rows
  with rewards and advantages. key: of the run.
  """

  frozen: Any
  method: Method
  traj: Trajectories
  key: Array


def minibatch_gradient(
  forward: Forward,
  params: Any,
  batch: Batch,
  states: dict[str, Any],
  *,
  reuse_scores: bool,
  token_fields: bool = False,
) -> tuple[Any, Array, dict[str, Any], dict[str, Any]]:
  """Gradient of the objective of the whole batch, its value, its metrics.

  Unscored trajectories are on-policy: logp_old is this forward's logp, without
  gradient. With token_fields the metrics have the entry 'tokens', see
  token_log. The last result are the states of the pieces after this step.
  Where the method has shifts, the gradient is that at the shifted parameters.
  """
  gradient = functools.partial(_gradient, forward, batch=batch)
  metrics: dict[str, Any] = {}
  if batch.method.shifts:
    moving = _objective(batch, states, False, shifting=True)
    grads, _, metrics, _ = gradient(params, moving, reuse_scores=reuse_scores)
    params = jax.tree.map(lambda p, g: (p + g).astype(p.dtype), params, grads)
    reuse_scores = False  # they are of the other parameters
  loss_of = _objective(batch, states, token_fields)
  grads, loss, own, states = gradient(
    params, loss_of, reuse_scores=reuse_scores
  )
  return grads, loss, {**metrics, **own}, states


def _gradient(
  forward: Forward,
  params: Any,
  loss_of: Any,
  *,
  batch: Batch,
  reuse_scores: bool,
) -> tuple[Any, Array, dict[str, Any], dict[str, Any]]:
  """`minibatch_gradient` of one function of the statistics at params."""
  method, traj, count = batch.method, batch.traj, forward.microbatches
  # What only credit reads was computed once, by score.
  trained = statistics_lib.model_needs(method, LOSS_SLOTS) | {
    statistics_lib.LOGP
  }
  unscored = traj.logp_old_BT is None
  needs = trained | {statistics_lib.ENTROPY} if unscored else trained

  def statistics(trainable: Any, rows: Trajectories, needs: Needs = needs):
    params = {**batch.frozen, **trainable}
    stats = statistics_lib.token_statistics(
      forward, params, rows, needs, method.logits
    )
    return _parted(stats, trained)

  rows = statistics_lib.forward_inputs(forward, traj)
  if count == 1:  # one forward serves the objective and its gradient
    (loss, aux), grads = jax.value_and_grad(
      lambda p: loss_of(*statistics(p, rows), p.get(types.LEARNED, {})),
      has_aux=True,
    )(params)
  elif objective_lib.is_per_token(method) or (
    objective_lib.is_per_group(method) and rows.group_size == traj.group_size
  ):
    grads, loss, aux = microbatches.one_pass(
      params, statistics, loss_of, rows, count, traj.logp_old_BT
    )
  else:
    # Of foreign rows, logp_old is the log-prob under which they were drawn.
    if reuse_scores and not unscored and 'foreign_B' not in traj.extras:
      stats = score_lib.scored_statistics(traj, needs)
    else:
      stats = statistics_lib.statistics_in_microbatches(
        forward, {**batch.frozen, **params}, traj, needs, method.logits
      )
    again = functools.partial(statistics, needs=trained)
    grads, loss, aux = microbatches.two_passes(
      params, again, loss_of, rows, count, _parted(stats, trained)
    )
  return grads, loss, *aux


def _parted(stats: dict[str, Array], trained: Needs):
  """Statistics to be differentiated, and those that only metrics read."""
  names = {statistics_lib.name_of(need) for need in trained}
  fixed = {name: stats.pop(name) for name in set(stats) - names}
  return stats, jax.lax.stop_gradient(fixed)


def _objective(
  batch: Batch,
  states: dict[str, Any],
  token_fields: bool,
  *,
  shifting: bool = False,
):
  """(statistics, those that only metrics read, learned) -> (loss, aux).

  aux: the metrics, and the states of the pieces after the step. shifting: of
  the shifts of the method in place of its losses.
  """

  def loss_of(
    stats: dict[str, Array], fixed: dict[str, Array], learned: dict[str, Any]
  ):
    traj = batch.traj
    metrics: dict[str, Any] = {}
    if traj.logp_old_BT is None:
      traj, scored = score_lib.with_scores(
        traj, jax.lax.stop_gradient({**stats, **fixed})
      )
      metrics |= scored
    loss, terms, after = objective_lib.terms(
      batch.method,
      stats,
      traj,
      batch.key,
      states,
      learned,
      shifting=shifting,
    )
    metrics |= objective_lib.reduce_metrics(terms, traj)
    if token_fields:
      fields = token_log.token_fields(traj, terms)
      metrics[types.TOKENS] = jax.lax.stop_gradient(fields)
    return loss, (metrics, after)

  return loss_of


def update_minibatch(
  forward: Forward,
  state: TrainState,
  batch: Batch,
  group_M: Array,
  *,
  optimizer: optax.GradientTransformation,
  reuse_scores: bool,
  log_rows: int = 0,
  by_row: bool = False,
) -> tuple[TrainState, Metrics]:
  """One optimizer step on the groups group_M; donate the state.

  by_row: group_M are rows, each of which is a group from here on.

  A non-finite loss or gradient changes nothing but `skipped`. With log_rows the
  metrics have the entry 'tokens': fields of the first rows of the batch.
  """
  # Of its own purpose: otherwise the first step's draws are the sampler's.
  key = randomness.purpose_key(batch.key, randomness.PIECES, state.step)
  take = groups.take_rows if by_row else groups.take
  batch = batch.replace(traj=take(batch.traj, group_M), key=key)
  grads, loss, metrics, states = minibatch_gradient(
    forward,
    state.params,
    batch,
    state.method_state,
    reuse_scores=reuse_scores,
    token_fields=log_rows > 0,
  )
  if log_rows:
    tokens = metrics[types.TOKENS]
    tokens = token_log.pick(tokens, batch.traj, group_M, log_rows)
    metrics[types.TOKENS] = tokens
  grads = optax.tree.cast(grads, jnp.float32)  # so is their norm
  norm = optax.tree.norm(grads)
  ok = jnp.isfinite(norm) & jnp.isfinite(loss)
  return _step(state, grads, states, optimizer, ok), {
    'train/loss': loss,
    'train/grad_norm': norm,
    'train/skipped': jnp.where(ok, 0.0, 1.0),
    **metrics,
  }


def _step(
  state: TrainState,
  grads: Any,
  states: dict[str, Any],
  optimizer: optax.GradientTransformation,
  ok: Array,
) -> TrainState:
  """The state after an optimizer step, if ok; else with one more skipped."""
  updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
  params = optax.apply_updates(state.params, updates)

  def keep(new: Array, old: Array):
    return jnp.where(ok, new, old)

  return state.replace(
    step=state.step + 1,
    params=jax.tree.map(keep, params, state.params),
    opt_state=jax.tree.map(keep, opt_state, state.opt_state),
    method_state=jax.tree.map(keep, states, state.method_state),
    skipped=state.skipped + jnp.where(ok, 0, 1),
  )
