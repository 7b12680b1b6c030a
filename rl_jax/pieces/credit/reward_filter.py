"""Likelihood of samples that pass a filter: expert iteration and its kin."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import by_group, safe_divide, ungroup
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.types import Array


@piece
class RewardAtLeast(Credit):
  """A = 1[R >= threshold] n / m, m of the group's n valid rows pass.

  Every prompt with a row that passes has the weight of n rows; one without any
  has none. With rewards 0 and 1 this is R / p, p the mean of the group.
  Source: expert iteration; "Reinforced Self-Training (ReST) for Language
  Modeling", whose thresholds rise, by digest; reconstructed.
  """

  threshold: float = 1.0

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj = ctx.per_row()
    valid_B = (traj.valid_B > 0).astype(jnp.float32)
    passes_B = valid_B * (reward_B >= self.threshold)

    def sums(x_B: Array):
      return by_group(x_B, traj.group_size).sum(1, keepdims=True)

    passes_NG = by_group(passes_B, traj.group_size)
    return CreditOut(
      ungroup(passes_NG * safe_divide(sums(valid_B), sums(passes_B)))
    )


@piece
class BestFraction(Credit):
  """A = 1[R >= q] n / m, q the reward of rank ceil(fraction n) of the batch.

  m of the batch's n valid rows pass; those that tie with the last one do, too.
  fraction 1 is the likelihood of all rows.
  Source: filtered behaviour cloning, "LMRL Gym: Benchmarks for Multi-Turn
  Reinforcement Learning with Language Models", on samples of the policy in
  place of data; reconstructed.
  """

  fraction: float = ranged(0.1, 0.0, 1.0, open_low=True)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj = ctx.per_row()
    valid_B = traj.valid_B > 0
    count = valid_B.sum()
    falling_B = jnp.sort(
      jnp.where(valid_B, reward_B, -jnp.inf), descending=True
    )
    rank = jnp.ceil(self.fraction * count).astype(jnp.int32)
    least = falling_B[jnp.maximum(rank, 1) - 1]
    passes_B = (valid_B & (reward_B >= least)).astype(jnp.float32)
    return CreditOut(passes_B * safe_divide(1.0 * count, passes_B.sum()))
