"""Weights that correct for a sampler whose log-probs are not the trainer's.

    u_t = logp_old_t - logp_behaviour_t, within +-20 nats

logp_behaviour is the sampler's, logp_old the trainer's of the same parameters.
Dropped and masked tokens weigh 0 and stay in the denominator of the loss.
"""

from collections.abc import Callable

import chex
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.divergences import kl_estimate
from rl_jax.pieces.ops.masking import (
  loss_mask,
  masked_mean,
  masked_sum,
  safe_divide,
)
from rl_jax.pieces.ops.ratios import log_ratio, sequence_log_ratio
from rl_jax.pieces.ops.sequences import row_weight, summed_log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Weight
from rl_jax.types import Array, Trajectories, static


def _mismatch(
  traj: Trajectories, between: Callable[..., Array] = log_ratio
) -> Array:
  """u [B, T], or what `between` makes of the two log-probs."""
  arrays = (traj.logp_old_BT, traj.logp_behaviour_BT, traj.mask_BT)
  chex.assert_equal_shape(arrays)
  return between(*arrays)


def _kept(weight_BT: Array, kept_BT: Array) -> LossOut:
  """The weights of kept tokens, 0 on the others."""
  dropped = {'policy/dropped_fraction': ~kept_BT}
  return LossOut(jnp.where(kept_BT, weight_BT, 0.0), dropped)


@piece
class IcePop(Weight):
  """w_t = k_t if low <= k_t <= high, else 0; k_t = exp(u_t).

  Source: "Every Step Evolves: Scaling Reinforcement Learning for Trillion-Scale
  Thinking Model" (Ring-1T); NeMo-RL loss_functions.py, OpenRLHF loss.py.
  """

  low: float = ranged(0.5, 0.0, 1.0)
  high: float = ranged(5.0, 1.0)
  per_token = True
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Weights [B, T]."""
    traj = ctx.traj
    weight_BT = jnp.exp(_mismatch(traj))
    kept_BT = (weight_BT >= self.low) & (weight_BT <= self.high)
    return _kept(weight_BT, kept_BT & (traj.mask_BT > 0))


@piece
class SequenceMask(Weight):
  """w_t = exp(u_t) if low <= exp(mean of the row's u) <= high, else 0.

  Source: NeMo-RL loss_functions.py and OpenRLHF loss.py (seq-mask-tis).
  """

  low: float = ranged(0.5, 0.0, 1.0)
  high: float = ranged(5.0, 1.0)
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Weights [B, T]."""
    traj = ctx.traj
    change_BT = _mismatch(traj)
    mean_B = jnp.exp(sequence_log_ratio(change_BT, traj.mask_BT))
    kept_B = (mean_B >= self.low) & (mean_B <= self.high)
    kept_BT = kept_B[:, None] & (traj.mask_BT > 0)
    return _kept(jnp.exp(change_BT), kept_BT)


@piece
class DivergenceMask(Weight):
  """w_t = 1 where d <= limit, else 0.

    k2_t = u_t^2 / 2,  k3_t = exp(u_t) - 1 - u_t

  d is the mean, the sum or the largest k of the row's trained tokens, or with
  level 'token' the k of each token. k3 estimates KL(sampler || trainer). Kept
  tokens have the weight 1: TruncatedImportance beside it corrects their ratio.
  Source: verl rollout_corr_helper.py (seq_mean_k3 and its kin), where dropped
  tokens leave the denominator of the loss, too.
  """

  limit: float = ranged(0.01, 0.0, open_low=True)  # nats, of k2 nats squared
  estimator: str = chosen('k3', ('k2', 'k3'))
  level: str = chosen('mean', ('mean', 'sum', 'max', 'token'))
  per_group = True
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Weights [B, T]."""
    traj = ctx.traj
    change_BT = _mismatch(traj)  # 0 on masked tokens, as its k are
    far_BT = kl_estimate(jnp.zeros_like(change_BT), change_BT, self.estimator)
    if self.level == 'mean':
      far_BT = masked_mean(far_BT, traj.mask_BT, axis=1, keepdims=True)
    elif self.level == 'sum':
      far_BT = masked_sum(far_BT, traj.mask_BT, axis=1, keepdims=True)
    elif self.level == 'max':
      far_BT = far_BT.max(axis=1, keepdims=True)
    within_BT = (traj.mask_BT > 0) & (far_BT <= self.limit)
    rejected = {'policy/rejected_fraction': ~within_BT}
    return LossOut(within_BT.astype(jnp.float32), rejected)


@piece
class TruncatedImportance(Weight):
  """w_t = min(exp(u_t), limit).

  Level 'sequence' takes the sum of u over the row. `normalize` divides by the
  mean of w after truncation, over the trained tokens, or over the trained rows.
  Source: "Your Efficient RL Framework Secretly Brings You Off-Policy RL
  Training"; verl rollout_corr_helper.py.
  """

  limit: float = ranged(2.0, 0.0, open_low=True)
  level: str = chosen('token', ('token', 'sequence'))
  normalize: bool = static(default=False)
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Weights [B, T]."""
    traj = ctx.traj
    mask_BT = traj.mask_BT
    if self.level == 'token':
      weight_BT = jnp.exp(_mismatch(traj))
    else:
      weight_B = jnp.exp(_mismatch(traj, summed_log_ratio))
      weight_BT = jnp.broadcast_to(weight_B[:, None], mask_BT.shape)
    cut_BT = weight_BT > self.limit
    weight_BT = jnp.minimum(weight_BT, self.limit)
    if self.normalize:
      if self.level == 'token':
        mean = masked_mean(weight_BT, loss_mask(traj))
      else:
        mean = masked_mean(weight_BT[:, 0], row_weight(traj))
      weight_BT = safe_divide(weight_BT, mean)
    return LossOut(
      jnp.where(mask_BT > 0, weight_BT, 0.0),
      {
        'policy/importance_weight': weight_BT,
        'policy/truncated_fraction': cut_BT,
      },
    )
