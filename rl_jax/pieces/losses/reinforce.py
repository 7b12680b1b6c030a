"""The score-function policy gradient."""

from typing import Any

import chex

from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Loss, LossContext, LossOut


@piece
class Reinforce(Loss):
  """l_t = -A_t logp_t: no ratio, no clip; on-policy data only.

  Source: Williams, "Simple statistical gradient-following algorithms"; verl
  core_algos.py (compute_policy_loss_reinforce).
  """

  aggregation: Any = None  # overrides the method's
  per_token = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    traj = ctx.traj
    logp_BT, adv_BT = ctx.stats['logp'], traj.advantages_BT
    chex.assert_equal_shape([logp_BT, adv_BT, traj.mask_BT])
    return LossOut(-adv_BT * logp_BT, {})
