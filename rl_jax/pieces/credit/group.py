"""Baselines and scales from the other samples of the same prompt."""

import chex
import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import (
  by_group,
  masked_center,
  masked_var,
  safe_divide,
  safe_sqrt,
  ungroup,
)
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.types import Array, Trajectories


def _centered(credit_B: Array, traj: Trajectories) -> tuple[Array, Array]:
  """(credit minus its group mean, valid rows per group), [N, G] and [N, 1]."""
  chex.assert_rank(credit_B, 1)
  valid_NG = by_group(traj.valid_B, traj.group_size)
  credit_NG = by_group(credit_B, traj.group_size)
  count_N1 = valid_NG.sum(1, keepdims=True)
  centered_NG = masked_center(credit_NG, valid_NG, axis=1)
  return jnp.where(count_N1 >= 2, centered_NG, 0.0), count_N1


@piece
class GroupCenter(Credit):
  """A_k = R_k - mean of the group's valid rewards.

  A group with fewer than two valid rows has advantage 0, and equal rewards give
  exactly 0. (verl keeps A = R for a group of one.)
  Source: DeepSeekMath (GRPO); by itself it is the advantage of Dr. GRPO.
  """

  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.credit, ctx.traj
    return CreditOut(ungroup(_centered(credit_B, traj)[0]))


@piece
class LeaveOneOut(Credit):
  """A_k = R_k - mean of the other valid rewards of the group (RLOO).

  Equals n / (n - 1) * (R_k - mean R) with n valid rows; 0 if n < 2.
  Source: "Back to Basics: Revisiting REINFORCE-Style Optimization for Learning
  from Human Feedback in LLMs".
  """

  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.credit, ctx.traj
    centered_NG, count_N1 = _centered(credit_B, traj)
    factor_N1 = safe_divide(count_N1, jnp.maximum(count_N1 - 1.0, 0.0))
    return CreditOut(ungroup(centered_NG * factor_N1))


@piece
class GroupScale(Credit):
  """A_k / (std of the group + eps), the standard deviation over valid rows.

  Source: DeepSeekMath (GRPO). ddof = 1 as in verl and trl; eps is 1e-6 in verl
  and 1e-4 in trl.
  """

  eps: float = ranged(1e-6, 0.0, open_low=True)  # in units of the reward
  ddof: int = ranged(1, 0, 1, static=True)
  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()
    credit_NG = by_group(credit_B, traj.group_size)
    valid_NG = by_group(traj.valid_B, traj.group_size)
    var_N1 = masked_var(
      credit_NG, valid_NG, axis=1, ddof=self.ddof, keepdims=True
    )
    return CreditOut(ungroup(credit_NG / (safe_sqrt(var_N1) + self.eps)))
