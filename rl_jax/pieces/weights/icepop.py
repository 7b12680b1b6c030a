"""IcePop: tokens on which sampler and trainer disagree are left out."""

from typing import ClassVar

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.ratios import log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Metrics, Trajectories


@piece
class IcePop:
  """w_t = k_t if low <= k_t <= high, else 0; k_t = pi_old / pi_behaviour.

  logp_behaviour is what the sampler used, logp_old what the trainer computes
  for the same weights; their difference is within +-20 nats. Dropped tokens
  stay in the loss's denominator.
  Source: "Every Step Evolves: Scaling Reinforcement Learning for Trillion-Scale
  Thinking Model" (Ring-1T), IcePop; NeMo-RL loss_functions.py, OpenRLHF
  loss.py (icepop).
  """

  low: float = ranged(0.5, 0.0, 1.0)
  high: float = ranged(5.0, 1.0)
  role: ClassVar[str] = 'weight'
  per_token: ClassVar[bool] = True

  def __call__(
    self, stats: dict[str, Array], traj: Trajectories, key: Array
  ) -> tuple[Array, Metrics]:
    """Weights [B, T]."""
    del stats, key
    old_BT, drawn_BT = traj.logp_old_BT, traj.logp_behaviour_BT
    chex.assert_equal_shape([old_BT, drawn_BT, traj.mask_BT])
    weight_BT = jnp.exp(log_ratio(old_BT, drawn_BT, traj.mask_BT))
    kept_BT = (weight_BT >= self.low) & (weight_BT <= self.high)
    kept_BT &= traj.mask_BT > 0
    return jnp.where(kept_BT, weight_BT, 0.0), {
      'policy/dropped_fraction': ~kept_BT
    }
