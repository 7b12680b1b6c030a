"""One optimizer step on a minibatch of groups, exact for every loss.

The objective reads statistics of the whole minibatch; how its gradient is
taken in microbatches is in microbatches.py.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import optax

from rl_jax import randomness
from rl_jax.learning import microbatches
from rl_jax.learning import objective as objective_lib
from rl_jax.learning import statistics as statistics_lib
from rl_jax.method import CREDIT_SLOTS, LOSS_SLOTS, Method
from rl_jax.models import transformer
from rl_jax.pieces.ops import groups
from rl_jax.pieces.ops.divergences import kl_estimate
from rl_jax.pieces.ops.masking import masked_mean
from rl_jax.records import rollout_log
from rl_jax.types import Array, Metrics, TrainState, Trajectories


def scores_first(method: Method, steps: int) -> bool:
  """True if a rollout needs a forward pass of its own before the update.

  With one optimizer step a rollout the update's own forward has the same
  weights and serves as logp_old, unless credit reads the model.
  """
  return steps > 1 or bool(statistics_lib.model_needs(method, CREDIT_SLOTS))


def score(
  params: Any,
  reference: Any | None,
  traj: Trajectories,
  method: Method,
  *,
  model: transformer.ModelConfig,
  temperature: float,
  pieces: int,
  policy: bool = True,
) -> tuple[Trajectories, Metrics]:
  """Fills logp_ref and, if policy, logp_old, entropy and values.

  Both without gradient, from the reference and from the current weights. Never
  packed: it is dispatched before the host has read any length.
  """
  statistics = functools.partial(
    statistics_lib.statistics_in_pieces,
    model=model,
    traj=traj,
    temperature=temperature,
    logits_transforms=method.logits,
    pieces=pieces,
  )
  found = traj
  if reference is not None:
    if 'lagged' in params:
      reference = {**reference, 'lagged': params['lagged']}
    found = found.replace(
      logp_ref_BT=statistics(reference, needs=())[statistics_lib.LOGP]
    )
  if not policy:
    return found, {}
  needs = statistics_lib.model_needs(method) | {statistics_lib.ENTROPY}
  return _with_scores(found, statistics(params, needs=needs))


def _with_scores(
  traj: Trajectories, stats: dict[str, Array]
) -> tuple[Trajectories, Metrics]:
  """Stores statistics of the weights that sampled, and what they tell.

  The metrics watch the one thing that must never drift: the log-prob that the
  sampler reported against the trainer's, `rollout/logp_gap_max` in nats.
  """
  stats, mask_BT = dict(stats), traj.mask_BT
  logp_BT = stats.pop(statistics_lib.LOGP)
  gap_BT = jnp.abs(traj.logp_behaviour_BT - logp_BT) * mask_BT
  if 'foreign_B' in traj.extras:
    # Sampled under another prompt: that is the policy of the trust region.
    foreign_B1 = traj.extras['foreign_B'][:, None] > 0
    logp_BT = jnp.where(foreign_B1, traj.logp_behaviour_BT, logp_BT)
    gap_BT = jnp.where(foreign_B1, 0.0, gap_BT)
  traj = traj.replace(
    logp_old_BT=logp_BT,
    entropy_BT=stats.pop(statistics_lib.ENTROPY),
    values_BT=stats.pop(statistics_lib.VALUES, None),
    extras={**traj.extras, **stats},
  )
  metrics = {
    'policy/entropy': masked_mean(traj.entropy_BT, mask_BT),
    'rollout/logp_gap_max': gap_BT.max(),
    'rollout/logp_gap_mean': masked_mean(gap_BT, mask_BT),
  }
  if traj.logp_ref_BT is not None:
    kl_BT = kl_estimate(traj.logp_old_BT, traj.logp_ref_BT, 'k3')
    metrics['policy/kl_ref'] = masked_mean(kl_BT, mask_BT)
  return traj, metrics


def scored_statistics(traj: Trajectories, needs: frozenset[str]) -> dict:
  """The statistics that `score` stored: free when the weights are the same."""
  stored = {
    statistics_lib.LOGP: traj.logp_old_BT,
    statistics_lib.ENTROPY: traj.entropy_BT,
    statistics_lib.VALUES: traj.values_BT,
    **traj.extras,
  }
  return {name: stored[name] for name in needs}


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
      scored, found = _with_scores(
        traj, jax.lax.stop_gradient({**stats, **fixed})
      )
    loss, terms = objective_lib.terms(method, stats, scored, key)
    metrics = found | objective_lib.reduce_metrics(terms, scored)
    if token_fields:
      fields = rollout_log.token_fields(scored, terms)
      metrics[rollout_log.TOKENS] = jax.lax.stop_gradient(fields)
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
    tokens = rollout_log.pick(
      metrics[rollout_log.TOKENS], traj, group_M, log_rows
    )
    metrics[rollout_log.TOKENS] = tokens
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
