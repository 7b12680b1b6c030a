"""T-PPO: the policy is trained on the tokens of this window alone."""

from typing import ClassVar

import jax.numpy as jnp

from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Metrics, Trajectories


@piece
class CurrentWindow:
  """1 from position extras['window_start_B'] on, 0 on earlier tokens.

  Without that key every response began in this window, and all weights are 1.
  Earlier tokens stay in the denominator of the loss.
  Source: "Truncated Proximal Policy Optimization", token filter, from reviews
  and digests.
  """

  role: ClassVar[str] = 'weight'
  per_token: ClassVar[bool] = True

  def __call__(
    self, stats: dict[str, Array], traj: Trajectories, key: Array
  ) -> tuple[Array, Metrics]:
    """Weights [B, T]."""
    del stats, key
    start_B = traj.extras.get('window_start_B')
    if start_B is None:
      return jnp.ones_like(traj.mask_BT), {}
    position_1T = jnp.arange(traj.mask_BT.shape[1])[None]
    fresh_BT = position_1T >= start_B[:, None]
    return fresh_BT.astype(jnp.float32), {'policy/fresh_fraction': fresh_BT}
