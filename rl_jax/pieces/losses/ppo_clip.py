"""PPO's clipped surrogate, the loss of GRPO and most of its successors."""

from typing import Any

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.ratios import clipped_surrogate, is_clipped, log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class PPOClip(Loss):
  """l_t = max(-A r_t, -A clip(r_t, 1 - clip_low, 1 + clip_high)).

    r_t = exp(logp_t - logp_old_t), the log-ratio within +-20 nats
    dual clip: where A < 0, l_t = min(l_t, -A dual_clip)

  No gradient where the clipped branch is larger, nor above the dual clip.
  Source: PPO, equation 7; dual clip: "Mastering Complex Control in MOBA Games
  with Deep Reinforcement Learning", equation 5; verl core_algos.py (vanilla),
  where dual_clip = 3 is on by default.
  """

  clip_low: float = ranged(0.2, 0.0, 1.0)
  clip_high: float = ranged(0.2, 0.0)
  # Largest ratio for A < 0; None: off.
  dual_clip: float | None = ranged(None, 1.0, open_low=True)
  aggregation: Any = None  # overrides the method's
  per_token = True
  off_policy = True

  @property
  def offers(self) -> dict[str, Any]:
    """The limits, for pieces that have to know which tokens are cut."""
    limits = {'clip_low': self.clip_low, 'clip_high': self.clip_high}
    return {'token_clip': limits}

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj, logp_BT, adv_BT = ctx.policy_tokens()
    ratio_BT = jnp.exp(log_ratio(logp_BT, traj.logp_old_BT, traj.mask_BT))
    loss_BT = clipped_surrogate(ratio_BT, adv_BT, self.clip_low, self.clip_high)
    clipped_BT = is_clipped(ratio_BT, adv_BT, self.clip_low, self.clip_high)
    metrics = {'policy/clip_fraction': clipped_BT}
    if self.dual_clip is not None:
      cut_BT = (adv_BT < 0) & (ratio_BT > self.dual_clip)
      loss_BT = jnp.where(cut_BT, -adv_BT * self.dual_clip, loss_BT)
      metrics['policy/dual_clip_fraction'] = cut_BT
    return LossOut(loss_BT, metrics)
