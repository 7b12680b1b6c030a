"""Sequences on which sampler and trainer disagree are left out."""

from typing import ClassVar

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.ratios import log_ratio, sequence_log_ratio
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Metrics, Trajectories


@piece
class SequenceMask:
  """w_t = k_t if low <= geometric mean of the row's k <= high, else 0.

    k_t = pi_old / pi_behaviour at token t, the log-ratio within +-20 nats

  logp_behaviour is what the sampler used, logp_old what the trainer computes
  for the same weights. Kept rows use their raw token weights; dropped rows stay
  in the loss's denominator.
  Source: NeMo-RL loss_functions.py and OpenRLHF loss.py (seq-mask-tis).
  """

  low: float = ranged(0.5, 0.0, 1.0)
  high: float = ranged(5.0, 1.0)
  role: ClassVar[str] = 'weight'
  per_token: ClassVar[bool] = False

  def __call__(
    self, stats: dict[str, Array], traj: Trajectories, key: Array
  ) -> tuple[Array, Metrics]:
    """Weights [B, T]."""
    del stats, key
    old_BT, drawn_BT = traj.logp_old_BT, traj.logp_behaviour_BT
    mask_BT = traj.mask_BT
    chex.assert_equal_shape([old_BT, drawn_BT, mask_BT])
    change_BT = log_ratio(old_BT, drawn_BT, mask_BT)
    mean_B = jnp.exp(sequence_log_ratio(change_BT, mask_BT))
    kept_B = (mean_B >= self.low) & (mean_B <= self.high)
    kept_BT = kept_B[:, None] & (mask_BT > 0)
    return jnp.where(kept_BT, jnp.exp(change_BT), 0.0), {
      'policy/dropped_fraction': ~kept_BT
    }
