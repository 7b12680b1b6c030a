"""GSPO: one length-normalised ratio per sequence, clipped once."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.ratios import (
  clipped_surrogate,
  is_clipped,
  log_ratio,
  sequence_log_ratio,
)
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class GSPO(Loss):
  """l_t = max(-A s_t, -A clip(s_t, 1 - clip_low, 1 + clip_high)).

    log s = mean over the row's trained tokens of logp_t - logp_old_t
    s_t   = exp(logp_t - sg[logp_t] + sg[log s]), the value s at every token

  The gradient flows through the token's own logp (GSPO-token); with one A per
  row it equals that of s itself under a mean over the row's tokens.
  Source: "Group Sequence Policy Optimization"; verl core_algos.py (gspo), which
  also cuts log s at 10; trl (importance_sampling_level = sequence).
  """

  clip_low: float = ranged(3e-4, 0.0, 1.0)
  clip_high: float = ranged(4e-4, 0.0)
  aggregation: Any = None  # overrides the method's
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj, logp_BT, adv_BT = ctx.policy_tokens()
    fixed_BT = jax.lax.stop_gradient(logp_BT)
    change_BT = log_ratio(fixed_BT, traj.logp_old_BT, traj.mask_BT)
    mean_B = sequence_log_ratio(change_BT, traj.mask_BT)
    ratio_BT = jnp.exp(logp_BT - fixed_BT + mean_B[:, None])
    limits = (self.clip_low, self.clip_high)
    return LossOut(
      clipped_surrogate(ratio_BT, adv_BT, *limits),
      {
        'policy/clip_fraction': is_clipped(ratio_BT, adv_BT, *limits),
        'policy/sequence_ratio': ratio_BT,
      },
    )
