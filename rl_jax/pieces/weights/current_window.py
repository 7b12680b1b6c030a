"""T-PPO: the policy is trained on the tokens of this window only."""

import jax.numpy as jnp

from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Weight


@piece
class CurrentWindow(Weight):
  """1 from position extras['window_start_B'] on, 0 on earlier tokens.

  Without that key every response began in this window, and all weights are 1.
  Earlier tokens stay in the denominator of the loss.
  Source: "Truncated Proximal Policy Optimization", token filter, from reviews
  and digests.
  """

  per_token = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Weights [B, T]."""
    traj = ctx.traj
    start_B = traj.extras.get('window_start_B')
    if start_B is None:
      return LossOut(jnp.ones_like(traj.mask_BT), {})
    position_1T = jnp.arange(traj.mask_BT.shape[1])[None]
    fresh_BT = position_1T >= start_B[:, None]
    return LossOut(
      fresh_BT.astype(jnp.float32), {'policy/fresh_fraction': fresh_BT}
    )
