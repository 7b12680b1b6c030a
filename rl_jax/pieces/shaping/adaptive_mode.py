"""A2FM: an expensive mode on an easy prompt earns less."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import by_group, masked_mean
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping


@piece
class AdaptiveModeReward(Shaping):
  """R_k * (1 - p^alpha) if k chose freely and not the instant mode.

  p is the share of right rows among the group's valid rows that were forced
  into the instant mode; without such rows p = 0. Reads extras['mode_B'] (0 is
  instant) and extras['forced_B'].
  Source: "A2FM: An Adaptive Agent Foundation Model for Tool-Aware Hybrid
  Reasoning", from notes; that p is the rate of the instant mode and that the
  parts multiply is not verified.
  """

  alpha: float = ranged(2.0, 0.0, open_low=True)
  correct_above: float = 0.5  # see row_inputs.right_B

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj = ctx.per_row()
    instant_B = row_inputs.read(traj, 'mode_B') == 0
    forced_B = row_inputs.read(traj, 'forced_B') > 0
    right_B = row_inputs.right_B(traj, self.correct_above)
    counted_B = (instant_B & forced_B).astype(jnp.float32) * traj.valid_B
    rate_N = masked_mean(
      by_group(right_B.astype(jnp.float32), traj.group_size),
      by_group(counted_B, traj.group_size),
      axis=1,
    )
    rate_B = jnp.repeat(rate_N, traj.group_size)
    paid_B = ~instant_B & ~forced_B
    return CreditOut(
      reward_B * jnp.where(paid_B, 1.0 - rate_B**self.alpha, 1.0)
    )
