"""One optimizer step on a minibatch of groups, exact for every loss.

The objective reads statistics of the whole minibatch; how its gradient is
taken in microbatches is in microbatches.py.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import optax

from rl_jax import randomness, types
from rl_jax.checks import check_range
from rl_jax.learning import microbatches, token_log
from rl_jax.learning import objective as objective_lib
from rl_jax.learning import score as score_lib
from rl_jax.learning import statistics as statistics_lib
from rl_jax.learning.score import scored_statistics
from rl_jax.method import LOSS_SLOTS, Method
from rl_jax.models import transformer
from rl_jax.pieces.ops import groups
from rl_jax.types import Array, Metrics, TrainState, Trajectories


@dataclasses.dataclass(frozen=True, kw_only=True)
class UpdateConfig:
  """How a rollout becomes optimizer steps; counts are prompts (groups).

  minibatch_prompts: one optimizer step each; None is the whole rollout.
  microbatch_prompts: memory only, never mathematics; None is one piece.
  pack: where the responses of an iteration are at most half full, all groups
    alike, padding takes part in attention alone. Memory and speed only, never
    mathematics; a second program is compiled when it is first used.
  """

  epochs: int = 1
  minibatch_prompts: int | None = None
  microbatch_prompts: int | None = None
  pack: bool = True

  def __post_init__(self):
    check_range(self, 'epochs', 1)
    check_range(self, 'minibatch_prompts', 1)
    check_range(self, 'microbatch_prompts', 1)


def minibatch_gradient(
  params: Any,
  frozen: Any,
  method: Method,
  traj: Trajectories,
  key: Array,
  *,
  model: transformer.ModelConfig,
  temperature: float,
  pieces: int,
  reuse_scores: bool,
  token_fields: bool = False,
  capacity: int | None = None,
) -> tuple[Any, Array, Metrics]:
  """Gradient of the whole-minibatch objective, its value and its metrics.

  Unscored trajectories are on-policy: logp_old is this forward's logp, without
  gradient. With token_fields the metrics have the entry 'tokens', see
  rollout_log. capacity: see packing.
  """
  # What only credit reads was computed once, by score.
  trained = statistics_lib.model_needs(method, LOSS_SLOTS) | {
    statistics_lib.LOGP
  }
  unscored = traj.logp_old_BT is None
  needs = trained | {statistics_lib.ENTROPY} if unscored else trained

  of_rows = dict(
    model=model,
    temperature=temperature,
    logits_transforms=method.logits,
    capacity=capacity,
  )

  def statistics(trainable, rows, needs=needs):
    found = statistics_lib.token_statistics(
      {**frozen, **trainable}, traj=rows, needs=needs, **of_rows
    )
    return _parted(found, trained)

  loss_of = _objective(method, traj, key, token_fields)
  rows = statistics_lib.forward_inputs(traj)
  if pieces == 1:  # one forward serves the objective and its gradient
    (loss, metrics), grads = jax.value_and_grad(
      lambda p: loss_of(*statistics(p, rows)), has_aux=True
    )(params)
    return grads, loss, metrics
  if objective_lib.is_per_token(method):
    return microbatches.one_pass(
      params, statistics, loss_of, rows, pieces, traj.logp_old_BT
    )
  if reuse_scores and not unscored:
    stats = scored_statistics(traj, needs)
  else:
    stats = statistics_lib.statistics_in_pieces(
      {**frozen, **params}, traj=traj, needs=needs, pieces=pieces, **of_rows
    )
  again = functools.partial(statistics, needs=trained)
  return microbatches.two_passes(
    params, again, loss_of, rows, pieces, _parted(stats, trained)
  )


def _parted(stats, trained):
  """Statistics to be differentiated, and those that only metrics read."""
  fixed = {name: stats.pop(name) for name in set(stats) - trained}
  return stats, jax.lax.stop_gradient(fixed)


def _objective(method, traj, key, token_fields):
  """(statistics, those that only metrics read) -> (loss, metrics)."""
  unscored = traj.logp_old_BT is None

  def loss_of(stats, fixed):
    scored, found = traj, {}
    if unscored:
      scored, found = score_lib.with_scores(
        traj, jax.lax.stop_gradient({**stats, **fixed})
      )
    loss, terms = objective_lib.terms(method, stats, scored, key)
    metrics = found | objective_lib.reduce_metrics(terms, scored)
    if token_fields:
      fields = token_log.token_fields(scored, terms)
      metrics[types.TOKENS] = jax.lax.stop_gradient(fields)
    return loss, metrics

  return loss_of


def update_minibatch(
  state: TrainState,
  frozen: Any,
  method: Method,
  traj: Trajectories,
  group_M: Array,
  key: Array,
  *,
  model: transformer.ModelConfig,
  optimizer: optax.GradientTransformation,
  temperature: float,
  pieces: int,
  reuse_scores: bool,
  log_rows: int = 0,
  capacity: int | None = None,
) -> tuple[TrainState, Metrics]:
  """One optimizer step on the groups group_M; donate the state.

  A non-finite loss or gradient changes nothing but `skipped`. With log_rows the
  metrics have the entry 'tokens': fields of the first rows of the batch.
  capacity: slots for the fed tokens of a group (packing.capacity).
  """
  traj = groups.take(traj, group_M)
  grads, loss, metrics = minibatch_gradient(
    state.params,
    frozen,
    method,
    traj,
    # Of its own purpose: otherwise the first step's draws are the sampler's.
    randomness.purpose_key(key, randomness.PIECES, state.step),
    model=model,
    temperature=temperature,
    pieces=pieces,
    reuse_scores=reuse_scores,
    token_fields=log_rows > 0,
    capacity=capacity,
  )
  if log_rows:
    tokens = token_log.pick(metrics[types.TOKENS], traj, group_M, log_rows)
    metrics[types.TOKENS] = tokens
  norm = optax.tree.norm(grads)
  ok = jnp.isfinite(norm) & jnp.isfinite(loss)
  grads = jax.tree.map(lambda g, p: g.astype(p.dtype), grads, state.params)
  return _step(state, grads, optimizer, ok), {
    'train/loss': loss,
    'train/grad_norm': norm,
    'train/skipped': jnp.where(ok, 0.0, 1.0),
    **metrics,
  }


def _step(state, grads, optimizer, ok) -> TrainState:
  """The state after an optimizer step, if ok; else with one more skipped."""
  updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
  params = optax.apply_updates(state.params, updates)

  def keep(new, old):
    return jnp.where(ok, new, old)

  return state.replace(
    step=state.step + 1,
    params=jax.tree.map(keep, params, state.params),
    opt_state=jax.tree.map(keep, opt_state, state.opt_state),
    skipped=state.skipped + jnp.where(ok, 0, 1),
  )
