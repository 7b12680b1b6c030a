"""Digi-Q: the best of N samples is imitated if it is better by enough."""

from typing import ClassVar

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import by_group, masked_center, ungroup
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Trajectories


@piece
class BestAdvantage:
  """A = 1 on the best row of a group where R - mean R > threshold, else 0.

  Of valid rows; equal best ones share the 1. The mean over the group is the
  value of its prompt, R the action value.
  Source: "Digi-Q: Learning Q-Value Functions for Training Device-Control
  Agents"; DigiRL-agent/digiq trainer.py (best_of_n), where Q and V are learned.
  """

  threshold: float = ranged(0.1)  # in units of the reward
  role: ClassVar[str] = 'credit'
  min_group_size: ClassVar[int] = 2

  def __call__(self, credit_B: Array, traj: Trajectories) -> Array:
    """[B] -> [B]."""
    chex.assert_rank(credit_B, 1)
    valid_NG = by_group(traj.valid_B, traj.group_size)
    credit_NG = by_group(credit_B, traj.group_size)
    centred_NG = masked_center(credit_NG, valid_NG, axis=1)
    centred_NG = jnp.where(valid_NG > 0, centred_NG, -jnp.inf)
    best_NG = centred_NG == centred_NG.max(axis=1, keepdims=True)
    best_NG &= valid_NG > 0
    count_N1 = jnp.maximum(best_NG.sum(axis=1, keepdims=True), 1)
    kept_NG = best_NG & (centred_NG > self.threshold)
    return ungroup(kept_NG / count_N1)
