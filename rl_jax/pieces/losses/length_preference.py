"""lambda-GRPO: PPO's clip with a learned preference for the length of rows."""

from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import (
  by_group,
  masked_center,
  masked_var,
  safe_sqrt,
)
from rl_jax.pieces.ops.ratios import clipped_surrogate, is_clipped, log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.types import Array, Trajectories

_LARGEST_EXPONENT = 80.0  # exp(80) is below the float32 maximum


@piece
class LengthPreference(Loss):
  """l_t = f_k max(-A r_t, -A clip(r_t, 1 - clip_low, 1 + clip_high)).

    f_k = n softmax_k(h_k^lambda),  h_k = 1 + spread z_k
    z_k = (length_k - mean length) / (std length + eps)  over n valid rows

  of the group; tokens that the environment said are not in the lengths. lambda
  is learned by the gradient of the loss, with the policy's optimizer and `rate`
  times its steps. lambda = 0 is PPO's clip; above 0 long rows weigh more, below
  0 short ones. h is at least `floor`, h^lambda at most e^80, beyond which one
  row has all of the weight anyway.
  Source: "lambda-GRPO: Unifying the GRPO Frameworks with Learnable Token
  Preferences" (arXiv:2510.06870), from the abstract and public summaries;
  spread, start, rate and floor are ours.
  """

  clip_low: float = ranged(0.2, 0.0, 1.0)
  clip_high: float = ranged(0.2, 0.0)
  start: float = ranged(0.0)  # lambda at first
  spread: float = ranged(1 / 9, 0.0, open_low=True)
  rate: float = ranged(1e3, 0.0)  # steps of lambda in steps of the optimizer
  eps: float = ranged(1e-6, 0.0, open_low=True)  # tokens
  floor: float = ranged(1e-3, 0.0, open_low=True)
  aggregation: Any = None  # overrides the method's
  min_group_size = 2
  off_policy = True

  def init_params(self) -> dict[str, Array]:
    """lambda - start, in units of `rate`."""
    return {'exponent': jnp.zeros((), jnp.float32)}

  def _weights(self, traj: Trajectories, exponent: Array) -> Array:
    """f [B]; 0 on invalid rows."""
    valid_NG = by_group(traj.valid_B, traj.group_size)
    length_B = row_inputs.policy_tokens_B(traj, traj.length_B)
    length_NG = by_group(length_B, traj.group_size)
    std_N1 = safe_sqrt(masked_var(length_NG, valid_NG, axis=1, keepdims=True))
    z_NG = masked_center(length_NG, valid_NG, axis=1) / (std_N1 + self.eps)
    h_NG = jnp.maximum(1.0 + self.spread * z_NG, self.floor)
    log_g_NG = jnp.minimum(exponent * jnp.log(h_NG), _LARGEST_EXPONENT)
    g_NG = jnp.where(valid_NG > 0, jnp.exp(log_g_NG), -jnp.inf)
    some_N1 = valid_NG.any(axis=1, keepdims=True)
    f_NG = jax.nn.softmax(jnp.where(some_N1, g_NG, 0.0), axis=1)
    return (f_NG * valid_NG.sum(axis=1, keepdims=True)).ravel()

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj, logp_BT, adv_BT = ctx.policy_tokens()
    exponent = self.start + self.rate * ctx.params['exponent']
    f_B1 = self._weights(traj, exponent)[:, None]
    ratio_BT = jnp.exp(log_ratio(logp_BT, traj.logp_old_BT, traj.mask_BT))
    loss_BT = clipped_surrogate(ratio_BT, adv_BT, self.clip_low, self.clip_high)
    return LossOut(
      f_B1 * loss_BT,
      {
        'policy/clip_fraction': is_clipped(
          ratio_BT, adv_BT, self.clip_low, self.clip_high
        ),
        'policy/length_exponent': exponent,
      },
    )
