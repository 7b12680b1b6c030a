"""Pass@k training: only the best sample of a group is credited."""

import jax.numpy as jnp

from rl_jax.pieces.ops.masking import by_group, ungroup
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class BestOfGroup(Credit):
  """A = R_best - R_second on the best valid row of a group, 0 elsewhere.

  What the sample adds to the maximum of its group. A tie for the best gives 0
  everywhere, and so does a group with fewer than two valid rows.
  Source: "Optimizing Language Models for Inference Time Objectives using
  Reinforcement Learning"; verl core_algos.py (grpo_passk).
  """

  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()
    credit_NG = by_group(credit_B, traj.group_size)
    valid_NG = by_group(traj.valid_B, traj.group_size) > 0
    ranked_NG = jnp.sort(jnp.where(valid_NG, credit_NG, -jnp.inf), axis=1)
    best_N1, second_N1 = ranked_NG[:, -1:], ranked_NG[:, -2:-1]
    gained_NG = valid_NG & (credit_NG == best_N1) & jnp.isfinite(second_N1)
    return CreditOut(ungroup(jnp.where(gained_NG, credit_NG - second_N1, 0.0)))
