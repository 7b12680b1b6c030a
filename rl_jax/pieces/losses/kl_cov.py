"""KL-Cov: a penalty on the tokens of largest covariance."""

from typing import Any

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import loss_mask, masked_center
from rl_jax.pieces.ops.ratios import log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class KLCov(Loss):
  """l_t = -A r_t, plus coef * |d_t| on the tokens of largest covariance.

    d_t = logp_t - logp_old_t,  r_t = exp(d_t): no PPO clip
    cov_t = (A_t - mean A) (logp_t - mean logp), no gradient
    selected: the max(floor(fraction * tokens), 1) largest cov_t

  Means and ranks are over the trained tokens of the minibatch. |d| is written
  d * sign(d), so at d = 0 its gradient is 0 (that of jnp.abs is 1).
  Source: "The Entropy Mechanism of Reinforcement Learning for Reasoning
  Language Models", KL-Cov; PRIME-RL/Entropy-Mechanism-of-RL core_algos.py. The
  code ranks per microbatch and penalises |d|, where the paper says KL.
  """

  coef: float = ranged(1.0, 0.0)  # per nat
  # Of the trained tokens.
  fraction: float = ranged(2e-3, 0.0, 1.0, open_low=True)
  aggregation: Any = None  # overrides the method's

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj, logp_BT, adv_BT = ctx.policy_tokens()
    difference_BT = log_ratio(logp_BT, traj.logp_old_BT, traj.mask_BT)
    mask_BT = loss_mask(traj)
    cov_BT = masked_center(adv_BT, mask_BT) * masked_center(logp_BT, mask_BT)
    count = jnp.maximum(jnp.floor(self.fraction * (mask_BT > 0).sum()), 1.0)
    # The count is traced, so ranks are compared instead of slicing a top-k;
    # ranks and signs have no gradient.
    order = jnp.where(mask_BT > 0, -cov_BT, jnp.inf).ravel()
    rank_BT = jnp.argsort(jnp.argsort(order)).reshape(cov_BT.shape)
    selected_BT = (mask_BT > 0) & (rank_BT < count)
    size_BT = difference_BT * jnp.sign(difference_BT)
    penalty_BT = jnp.where(selected_BT, size_BT, 0.0)
    loss_BT = -adv_BT * jnp.exp(difference_BT) + self.coef * penalty_BT
    return LossOut(
      loss_BT,
      {
        'policy/selected_fraction': selected_BT,
      },
    )
