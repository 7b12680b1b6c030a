"""NFT: likelihood of right answers, and of the implied policy of wrong ones."""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import by_group, masked_mean
from rl_jax.pieces.ops.ratios import log_ratio
from rl_jax.pieces.ops.sequences import row_credit
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.types import Array

MAX_LOG_RATIO = 10.0  # nats, of the released code
RATE_BOUND = 0.02  # correct rates are cut to [bound, 1 - bound]


def _floored(x: Array, floor: float) -> Array:
  """max(x, floor) with the gradient of x."""
  return x + jax.lax.stop_gradient(jnp.maximum(x, floor) - x)


@piece
class NFT(Loss):
  """l_t = w(p) times -log of one of two likelihood ratios.

    right: -log max(r_t, positive_floor)
    wrong: -negative_weight log max((1 - p r_t) / (1 - p), negative_floor)
    w(p) = 1 - p, sqrt((1 - p) / p) or 1 for normalize = 1, 2, 0

  r_t = pi / pi_old at most e^10; p is the group's share of right rows, cut to
  [0.02, 0.98]; the floors keep the gradient. A row is right if its credit
  exceeds `threshold`: leave the credit chain empty. With r = 1, normalize 1 is
  Dr. GRPO and normalize 2 is GRPO with ddof 0.
  Source: "Bridging Supervised Learning and Reinforcement Learning in Math
  Reasoning"; NVlabs/NFT dp_actor.py (ratio_type token).
  """

  negative_weight: float = 1.0  # 0: only right answers are learned
  positive_floor: float = ranged(0.0, 0.0)
  negative_floor: float = ranged(1.0, 0.0, open_low=True)
  threshold: float = 0.5  # in units of the reward
  normalize: int = ranged(1, 0, 2, static=True)
  aggregation: Any = None  # overrides the method's
  min_group_size = 2
  off_policy = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj = ctx.traj
    logp_BT, old_BT, mask_BT = ctx.stats['logp'], traj.logp_old_BT, traj.mask_BT
    chex.assert_equal_shape([logp_BT, old_BT, mask_BT, traj.advantages_BT])
    right_B = row_credit(traj) > self.threshold
    right_NG = by_group(right_B.astype(jnp.float32), traj.group_size)
    valid_NG = by_group(traj.valid_B, traj.group_size)
    rate_N = masked_mean(right_NG, valid_NG, axis=1)
    rate_N = jnp.clip(rate_N, RATE_BOUND, 1.0 - RATE_BOUND)
    rate_B1 = jnp.repeat(rate_N, traj.group_size)[:, None]
    change_BT = log_ratio(logp_BT, old_BT, mask_BT)
    ratio_BT = jnp.exp(jnp.minimum(change_BT, MAX_LOG_RATIO))
    implied_BT = (1.0 - rate_B1 * ratio_BT) / (1.0 - rate_B1)
    good_BT = -jnp.log(_floored(ratio_BT, self.positive_floor))
    bad_BT = -jnp.log(_floored(implied_BT, self.negative_floor))
    weight_B1 = {
      0: jnp.ones_like(rate_B1),
      1: 1.0 - rate_B1,
      2: jnp.sqrt((1.0 - rate_B1) / rate_B1),
    }[self.normalize]
    loss_BT = jnp.where(
      right_B[:, None], good_BT, self.negative_weight * bad_BT
    )
    return LossOut(weight_B1 * loss_BT, {'policy/correct_rate': rate_N.mean()})
