"""The complete loss of a method on one whole minibatch."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.method import Method
from rl_jax.pieces import calls
from rl_jax.pieces.ops.divergences import kl_estimate
from rl_jax.pieces.ops.masking import (
  loss_mask,
  masked_center,
  masked_max,
  places,
  safe_divide,
  zero_masked,
)
from rl_jax.pieces.ops.ratios import log_ratio
from rl_jax.pieces.roles import (
  AggregationContext,
  Loss,
  LossContext,
  Regularizer,
  Shift,
  ValueLoss,
  Weight,
)
from rl_jax.types import Array, Metrics, Trajectories


def is_per_token(method: Method) -> bool:
  """True if no loss or weight looks beyond a token and its precomputed parts.

  Then its cotangents at a token do not depend on statistics of other tokens.
  """
  return all(piece.per_token for piece in (*method.losses, *method.weights))


def is_per_group(method: Method) -> bool:
  """True if no loss or weight looks beyond a group and its precomputed parts.

  A piece says so by `per_token` or `per_group`. Where microbatches are whole
  groups, their cotangents do not depend on statistics of other microbatches.
  """
  return all(
    piece.per_token or piece.per_group
    for piece in (*method.losses, *method.weights)
  )


def objective(
  method: Method,
  stats: dict[str, Array],
  traj: Trajectories,
  key: Array,
) -> tuple[Array, Metrics]:
  """Sum of the method's losses, to be minimised, and scalar metrics.

    L = sum_j sum_bt a_j w l_j    scalar losses are added as they are

  a_j are the aggregation weights, w the product of the method's token weights
  that weigh losses of this role ('policy' unless the weight names others in
  `weighs`; without gradient). [B, T] metrics of the
  pieces are averaged over trained tokens, or maximised where their name ends in
  `_max`. Pieces with a state or parameters of their own begin: see terms.

  Args:
    stats: statistics of the current policy, each [B, T] or [B, T, d].
  """
  total, metrics, _ = terms(
    method, stats, traj, key, method.init_state(0), method.init_params()
  )
  return total, reduce_metrics(metrics, traj)


def terms(
  method: Method,
  stats: dict[str, Array],
  traj: Trajectories,
  key: Array,
  states: dict[str, Any],
  learned: dict[str, Any],
  *,
  shifting: bool = False,
) -> tuple[Array, Metrics, dict[str, Any]]:
  """`objective` with its metrics as the pieces return them, [B, T] too.

  states: of the pieces, by path; learned: their parameters, which have a
  gradient. Returns the states after this step, without gradient.
  shifting: the sum of the method's shifts in place of that of its losses.
  """
  stats = {n: zero_masked(x, places(n, traj)) for n, x in stats.items()}
  fixed, states = jax.lax.stop_gradient((stats, dict(states)))
  metrics: dict[str, Any] = _diagnostics(fixed, traj)
  products: dict[str, Array] = {}  # by role of the loss, [B, T]

  def call(
    path: str, piece: Loss | Weight, stats: dict[str, Array], index: int
  ):
    """(loss or factor) of a piece; keeps its metrics and its state."""
    ctx = LossContext(
      stats=stats,
      traj=traj,
      key=jax.random.fold_in(key, index),
      state=states.get(path),
      params=learned.get(path),
    )
    out = calls.loss(path, piece, ctx)
    if out.state is not None:
      states[path] = jax.lax.stop_gradient(out.state)
    metrics.update(out.metrics)
    return out.value

  for i, (path, piece) in enumerate(method.pieces_of('weights')):
    factor_BT = call(path, piece, fixed, i)
    for role in piece.weighs:
      factor_BT = jax.lax.stop_gradient(factor_BT)
      products[role] = products.get(role, 1.0) * factor_BT
  total = jnp.float32(0.0)
  for i, (path, loss) in enumerate(method.pieces_of('losses')):
    if isinstance(loss, Shift) != shifting:
      continue
    value = call(path, loss, stats, len(method.weights) + i)
    factor = products.get(loss.role, 1.0)
    total += _summed(method, path, loss, value, traj, factor)
  metrics['train/loss'] = total
  return total, metrics, states


def _summed(
  method: Method,
  path: str,
  loss: Loss,
  value: Array,
  traj: Trajectories,
  factor: Any,
) -> Array:
  """The scalar that a loss adds; factor: of its tokens, by weights."""
  if value.ndim:
    ctx = AggregationContext(
      traj.mask_BT, traj.weight_B, traj.group_size, traj.turn_BT
    )
    aggregation = loss.aggregation or method.aggregation
    assert aggregation is not None, 'validate refuses methods without one'
    token_BT = calls.aggregation('aggregation', aggregation, ctx, traj)
    token_BT = token_BT * factor
    return (jnp.where(token_BT != 0, value, 0.0) * token_BT).sum()
  if loss.per_token and not isinstance(loss, (Regularizer, ValueLoss, Shift)):
    raise ValueError(
      f'method.{path} has per_token = True, but returns one number: return '
      'a loss of every token, [B, T], or set per_token = False'
    )
  return value


def reduce_metrics(metrics: Metrics, traj: Trajectories) -> Metrics:
  """Scalars: means over trained tokens, or largest values for `*_max`."""
  trained_BT = traj.mask_BT * traj.weight_B[:, None]
  average_BT = safe_divide(trained_BT, trained_BT.sum())
  return {
    name: _reduce_metric(name, x, average_BT) for name, x in metrics.items()
  }


def _diagnostics(stats: dict[str, Array], traj: Trajectories) -> Metrics:
  """Metrics that every method reports alike, [B, T]."""
  metrics = {}
  if 'entropy' in stats:
    metrics['policy/entropy'] = stats['entropy']
  if traj.advantages_BT is not None:
    # Of log-prob and advantage over the trained tokens: what moves entropy.
    mask_BT = loss_mask(traj)
    metrics['policy/covariance'] = masked_center(
      traj.advantages_BT, mask_BT
    ) * masked_center(stats['logp'], mask_BT)
  if traj.logp_old_BT is not None:
    old_BT = traj.logp_old_BT
    ratio_BT = jnp.exp(log_ratio(stats['logp'], old_BT, traj.mask_BT))
    metrics['policy/ratio_max'] = ratio_BT
    # The tokens are drawn from the old policy: this is KL(old || current).
    metrics['policy/kl_old'] = kl_estimate(old_BT, stats['logp'], 'k3')
  return metrics


def _reduce_metric(name: str, x: Array, weight_BT: Array) -> Array:
  x = jax.lax.stop_gradient(jnp.asarray(x, jnp.float32))
  if not x.ndim:
    return x
  if name.endswith('_max'):
    return masked_max(x, weight_BT)
  return (jnp.where(weight_BT != 0, x, 0.0) * weight_BT).sum()
