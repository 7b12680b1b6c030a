"""Truncated importance sampling between the sampler and the trainer."""

from typing import ClassVar

import chex
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.masking import loss_mask, masked_mean, safe_divide
from rl_jax.pieces.ops.ratios import log_ratio
from rl_jax.pieces.ops.sequences import row_weight, summed_log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Metrics, Trajectories, static


@piece
class TruncatedImportance:
  """w_t = min(exp(u_t), limit),  u_t = logp_old_t - logp_behaviour_t.

  logp_behaviour is what the sampler used, logp_old what the trainer computes
  for the same weights; u within +-20 nats. Level 'sequence' takes the sum of u
  over the row. `normalize` divides by the mean of w after truncation, over the
  trained tokens, or over the trained rows.
  Source: "Your Efficient RL Framework Secretly Brings You Off-Policy RL
  Training"; verl rollout_corr_helper.py.
  """

  limit: float = ranged(2.0, 0.0, open_low=True)
  level: str = chosen('token', ('token', 'sequence'))
  normalize: bool = static(default=False)
  role: ClassVar[str] = 'weight'
  per_token: ClassVar[bool] = False

  def __call__(
    self, stats: dict[str, Array], traj: Trajectories, key: Array
  ) -> tuple[Array, Metrics]:
    """Weights [B, T], 0 on masked tokens."""
    del stats, key
    old_BT, drawn_BT = traj.logp_old_BT, traj.logp_behaviour_BT
    mask_BT = traj.mask_BT
    chex.assert_equal_shape([old_BT, drawn_BT, mask_BT])
    if self.level == 'token':
      weight_BT = jnp.exp(log_ratio(old_BT, drawn_BT, mask_BT))
    else:
      weight_B = jnp.exp(summed_log_ratio(old_BT, drawn_BT, mask_BT))
      weight_BT = jnp.broadcast_to(weight_B[:, None], mask_BT.shape)
    cut_BT = weight_BT > self.limit
    weight_BT = jnp.minimum(weight_BT, self.limit)
    if self.normalize:
      if self.level == 'token':
        mean = masked_mean(weight_BT, loss_mask(traj))
      else:
        mean = masked_mean(weight_BT[:, 0], row_weight(traj))
      weight_BT = safe_divide(weight_BT, mean)
    return jnp.where(mask_BT > 0, weight_BT, 0.0), {
      'policy/importance_weight': weight_BT,
      'policy/truncated_fraction': cut_BT,
    }
