"""The complete loss of a method on one whole minibatch."""

from typing import Any

import chex
from flax import struct
import jax
import jax.numpy as jnp

from rl_jax.divergences import kl_estimate
from rl_jax.masking import (
  loss_mask,
  masked_center,
  masked_max,
  safe_divide,
  zero_masked,
)
from rl_jax.method import Method
from rl_jax.ratios import log_ratio
from rl_jax.types import Array, Metrics, Trajectories


@struct.dataclass(kw_only=True)
class Reduction:
  """Token weights of one whole minibatch; rows may then be taken apart."""

  losses: tuple[Array, ...]  # [B, T], one for each loss of the method
  metrics_BT: Array  # sums to 1; averages the metrics


def reduction(method: Method, traj: Trajectories) -> Reduction:
  """The aggregation weights of every loss, from the whole minibatch."""
  shared_BT = method.aggregation(traj.mask_BT, traj.weight_B, traj.group_size)
  weights = []
  for loss in method.losses:
    own = getattr(loss, 'aggregation', None)
    weights.append(
      shared_BT
      if own is None
      else own(traj.mask_BT, traj.weight_B, traj.group_size)
    )
  tokens_BT = traj.mask_BT * traj.weight_B[:, None]
  return Reduction(
    losses=tuple(weights),
    metrics_BT=safe_divide(tokens_BT, tokens_BT.sum()),
  )


def is_per_token(method: Method) -> bool:
  """True if no loss or weight looks beyond a token and its precomputed parts.

  Then `objective` may be summed over microbatches that share one Reduction.
  """
  return all(piece.per_token for piece in (*method.losses, *method.weights))


def objective(
  method: Method,
  stats: dict[str, Array],
  traj: Trajectories,
  key: Array,
  weights: Reduction | None = None,
) -> tuple[Array, Metrics]:
  """Sum of the method's losses, to be minimised.

    L = sum_j sum_bt a_j w l_j    scalar losses are added as they are

  a_j are the aggregation weights, w the product of the method's token weights
  (without gradient; 1 unless the loss has role 'policy').

  Args:
    stats: statistics of the current policy, each [B, T] or [B, T, d].
    weights: those of the whole minibatch if traj is only a part of it.

  Returns:
    The scalar, and scalar metrics. [B, T] metrics of the pieces are averaged
    over trained tokens, or maximised where their name ends in `_max`.
  """
  if weights is None:
    weights = reduction(method, traj)
  total, metrics = terms(method, stats, traj, key, weights)
  return total, reduce_metrics(metrics, weights)


def terms(
  method: Method,
  stats: dict[str, Array],
  traj: Trajectories,
  key: Array,
  weights: Reduction,
) -> tuple[Array, Metrics]:
  """`objective` with its metrics as the pieces return them, [B, T] too."""
  stats = {name: zero_masked(x, traj.mask_BT) for name, x in stats.items()}
  fixed = jax.tree.map(jax.lax.stop_gradient, stats)
  metrics: dict[str, Any] = _diagnostics(fixed, traj)
  product_BT = jnp.ones_like(traj.mask_BT)
  for i, piece in enumerate(method.weights):
    factor_BT, found = piece(fixed, traj, jax.random.fold_in(key, i))
    chex.assert_equal_shape([factor_BT, product_BT])
    product_BT *= jax.lax.stop_gradient(factor_BT)
    metrics.update(found)
  total = jnp.float32(0.0)
  for i, loss in enumerate(method.losses):
    piece_key = jax.random.fold_in(key, len(method.weights) + i)
    value, found = loss(stats, traj, piece_key)
    if value.ndim:
      chex.assert_equal_shape([value, product_BT])
      token_BT = weights.losses[i]
      if loss.role == 'policy':
        token_BT = token_BT * product_BT
      value = (jnp.where(token_BT != 0, value, 0.0) * token_BT).sum()
    total += value
    metrics.update(found)
  metrics['train/loss'] = total
  return total, metrics


def reduce_metrics(metrics: Metrics, weights: Reduction) -> Metrics:
  """Scalars: means over trained tokens, or largest values for `*_max`."""
  return {
    name: _reduce_metric(name, x, weights.metrics_BT)
    for name, x in metrics.items()
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
