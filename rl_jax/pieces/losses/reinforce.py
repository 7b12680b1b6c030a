"""The score-function policy gradient."""

from typing import Any, ClassVar

import chex

from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Metrics, Trajectories


@piece
class Reinforce:
  """l_t = -A_t logp_t: no ratio, no clip; on-policy data only.

  Source: Williams, "Simple statistical gradient-following algorithms"; verl
  core_algos.py (compute_policy_loss_reinforce).
  """

  aggregation: Any = None  # overrides the method's
  role: ClassVar[str] = 'policy'
  per_token: ClassVar[bool] = True

  def __call__(
    self, stats: dict[str, Array], traj: Trajectories, key: Array
  ) -> tuple[Array, Metrics]:
    """Loss [B, T]."""
    del key
    logp_BT, adv_BT = stats['logp'], traj.advantages_BT
    chex.assert_equal_shape([logp_BT, adv_BT, traj.mask_BT])
    return -adv_BT * logp_BT, {}
