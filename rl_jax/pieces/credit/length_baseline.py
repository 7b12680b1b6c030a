"""OPO: the group baseline weighted by response length."""

import jax.numpy as jnp

from rl_jax.pieces.ops.masking import by_group, masked_mean, ungroup
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class LengthWeightedCenter(Credit):
  """A_k = R_k - sum_j T_j R_j / sum_j T_j over the group's valid rows.

  T_j are the trained tokens of row j: the baseline of least variance if the
  squared gradient norm of a row grows with its length. 0 for fewer than two
  valid rows.
  Source: "On-Policy RL with Optimal Reward Baseline"; verl core_algos.py (opo).
  """

  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()
    credit_NG = by_group(credit_B, traj.group_size)
    valid_NG = by_group(traj.valid_B, traj.group_size)
    tokens_NG = by_group(traj.mask_BT.sum(1), traj.group_size)
    # Taking one reward off first keeps groups of equal rewards exactly at 0.
    low_N1 = jnp.where(valid_NG > 0, credit_NG, jnp.inf).min(1, keepdims=True)
    shifted_NG = jnp.where(valid_NG > 0, credit_NG - low_N1, 0.0)
    baseline_N1 = masked_mean(
      shifted_NG, valid_NG * tokens_NG, axis=1, keepdims=True
    )
    return CreditOut(
      ungroup(jnp.where(valid_NG > 0, shifted_NG - baseline_N1, 0.0))
    )
