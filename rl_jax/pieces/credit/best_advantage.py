"""Digi-Q: the best of N samples is imitated if it is good enough."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import by_group, ungroup
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class BestAdvantage(Credit):
  """w = 1 on the row of a group with the largest A if A > threshold, else 0.

  A is what credit before it leaves: Q - V of critics, or after GroupCenter the
  reward less the group's mean. Of valid rows; equal best ones share the 1. With
  groups of one row and a threshold below all A it is behaviour cloning.
  Source: "Digi-Q: Learning Q-Value Functions for Training Device-Control
  Agents"; DigiRL-agent/digiq trainer.py (best_of_n).
  """

  threshold: float = ranged(0.1)  # in units of the reward

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()
    valid_NG = by_group(traj.valid_B, traj.group_size) > 0
    credit_NG = by_group(credit_B, traj.group_size)
    credit_NG = jnp.where(valid_NG, credit_NG, -jnp.inf)
    best_NG = credit_NG == credit_NG.max(axis=1, keepdims=True)
    best_NG &= valid_NG
    count_N1 = jnp.maximum(best_NG.sum(axis=1, keepdims=True), 1)
    kept_NG = best_NG & (credit_NG > self.threshold)
    return CreditOut(ungroup(kept_NG / count_N1))
