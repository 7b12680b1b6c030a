"""Scales of the reward that all prompts of a rollout share."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import (
  masked_sum,
  masked_var,
  safe_divide,
  safe_sqrt,
)
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class BatchScale(Credit):
  """R / (std of all valid rewards of the rollout + eps).

  Placed before GroupCenter, the deviation is that of the rewards themselves:
  easy and hard prompts get one scale, unlike with GroupScale.
  Source: "Part I: Tricks or Traps? A Deep Dive into RL for LLM Reasoning" (Lite
  PPO); ROLL functionals.py (reward_norm) with ddof = 1.
  """

  eps: float = ranged(1e-6, 0.0, open_low=True)  # in units of the reward
  ddof: int = ranged(1, 0, 1, static=True)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()
    var = masked_var(credit_B, traj.valid_B, ddof=self.ddof)
    return CreditOut(credit_B / (safe_sqrt(var) + self.eps))


@piece
class NonzeroScale(Credit):
  """R * (valid rows / valid rows with a non-zero reward).

  Makes up for the rows that carry no gradient; 0 if every reward is 0.
  Source: "GPG: A Simple and Strong Reinforcement Learning Baseline for Model
  Reasoning"; verl core_algos.py (gpg). The paper counts rows by advantage.
  """

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()
    used_B = (credit_B != 0).astype(jnp.float32)
    used = masked_sum(used_B, traj.valid_B)
    return CreditOut(credit_B * safe_divide(traj.valid_B.sum(), used))
