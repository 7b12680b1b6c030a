"""DeepSeek-V3.2: bad responses that the policy has left are not pushed down."""

import chex
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.ratios import log_ratio, sequence_log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Weight


@piece
class OffPolicyMask(Weight):
  """w_t = 0 where A_t < 0 and d > threshold, else 1.

    d = mean over the trained tokens of the row of log pi_old - log pi

  A row of negative advantage thus leaves the loss once the policy writes it
  much less often than the policy that it is from; rows that did well stay. One
  update after the rollout d is 0. pi_old is the trainer's policy before the
  update, or with old='behaviour' what drew the tokens, whose mismatch with the
  trainer then counts, too, as in the paper. Dropped tokens stay in the
  denominator of the loss, and in its other terms.
  Source: "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models",
  off-policy sequence masking, whose threshold is not published; trl
  (off_policy_mask_threshold), whose documentation proposes 0.5.
  """

  threshold: float = ranged(0.5, 0.0)  # nats a token
  old: str = chosen('old', ('old', 'behaviour'))
  per_group = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Weights [B, T]."""
    traj = ctx.traj
    old_BT = traj.logp_old_BT
    if self.old == 'behaviour':
      old_BT = traj.logp_behaviour_BT
    arrays = old_BT, ctx.stats['logp'], traj.mask_BT
    chex.assert_equal_shape([*arrays, traj.advantages_BT])
    distance_B = sequence_log_ratio(log_ratio(*arrays), traj.mask_BT)
    far_BT = (distance_B > self.threshold)[:, None]
    left_BT = far_BT & (traj.advantages_BT < 0) & (traj.mask_BT > 0)
    return LossOut(
      jnp.where(left_BT, 0.0, 1.0), {'policy/off_policy_fraction': left_BT}
    )
