"""MinPRO: the token ratio times the smallest ratio before it."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.ratios import clipped_surrogate, is_clipped, log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.types import Array


def _smallest_before(log_ratio_BT: Array, mask_BT: Array) -> Array:
  """Minimum over the kept tokens strictly before t; 0 if there is none."""
  kept_BT = jnp.where(mask_BT > 0, log_ratio_BT, jnp.inf)
  running_BT = jax.lax.cummin(kept_BT, axis=1)
  before_BT = jnp.pad(
    running_BT[:, :-1], ((0, 0), (1, 0)), constant_values=jnp.inf
  )
  return jnp.where(jnp.isinf(before_BT), 0.0, before_BT)


@piece
class MinPRO(Loss):
  """The weight w_t = r_t min_{j < t} r_j in place of the ratio r_t.

    form 'score': l_t = -sg[clip(w_t, 1 - clip_low, 1 + clip_high)] A logp_t
    form 'ppo':   l_t = max(-A w_t, -A clip(w_t, ...)), gradient through r_t

  The exact off-policy weight of a token is the product of the ratios up to it;
  the minimum approximates that of the prefix. Masked tokens are skipped.
  Source: "A Step Back: Prefix Importance Ratio Stabilizes Policy Optimization";
  no released code found, so which form the paper uses is unverified.
  """

  clip_low: float = ranged(0.2, 0.0, 1.0)
  clip_high: float = ranged(0.28, 0.0)
  form: str = chosen('score', ('score', 'ppo'))
  aggregation: Any = None  # overrides the method's
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj, logp_BT, adv_BT = ctx.policy_tokens()
    change_BT = log_ratio(logp_BT, traj.logp_old_BT, traj.mask_BT)
    fixed_BT = jax.lax.stop_gradient(change_BT)
    prefix_BT = jnp.exp(_smallest_before(fixed_BT, traj.mask_BT))
    if self.form == 'ppo':
      weight_BT = prefix_BT * jnp.exp(change_BT)
      limits = (self.clip_low, self.clip_high)
      loss_BT = clipped_surrogate(weight_BT, adv_BT, *limits)
      cut_BT = is_clipped(weight_BT, adv_BT, *limits)
    else:
      weight_BT = prefix_BT * jnp.exp(fixed_BT)
      low, high = 1.0 - self.clip_low, 1.0 + self.clip_high
      loss_BT = -jnp.clip(weight_BT, low, high) * adv_BT * logp_BT
      cut_BT = (weight_BT < low) | (weight_BT > high)
    return LossOut(
      loss_BT,
      {
        'policy/clip_fraction': cut_BT,
        'policy/prefix_ratio': prefix_BT,
      },
    )
