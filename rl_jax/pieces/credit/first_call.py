"""ASPO: right answers that call a tool early gain a bounded bias."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import (
  by_group,
  masked_mean,
  safe_divide,
  ungroup,
)
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class FirstCallBias(Credit):
  """A_k + clip(coef (p_k - mean p) / mean L, -limit |A_k|, limit |A_k|).

  For the right rows of a group that call a tool; p is the position of the
  first call, L the response length, both in tokens that the environment has not
  said, means are over these rows. Other rows are unchanged. Reads
  extras['first_call_B'].
  Source: "Understanding Tool-Integrated Reasoning", equation 2; the bound is
  limit * A in the paper and limit * |A| in a verl recipe, equal for A >= 0.
  """

  coef: float = ranged(-2.0)  # delta of the paper; below 0 favours early calls
  limit: float = ranged(0.7, 0.0)  # kappa of the paper
  correct_above: float = 0.5  # see row_inputs.right_B

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()
    call_B = row_inputs.read(traj, 'first_call_B')
    right_B = row_inputs.right_B(traj, self.correct_above)
    chosen_B = ((call_B >= 0) & right_B).astype(jnp.float32)
    chosen_NG = by_group(chosen_B, traj.group_size)
    call_NG, length_NG = (
      by_group(row_inputs.policy_tokens_B(traj, end_B), traj.group_size)
      for end_B in (call_B, traj.length_B)
    )
    mean_call_N1 = masked_mean(call_NG, chosen_NG, axis=1, keepdims=True)
    mean_length_N1 = masked_mean(length_NG, chosen_NG, axis=1, keepdims=True)
    bias_NG = self.coef * safe_divide(call_NG - mean_call_N1, mean_length_N1)
    bound_B = self.limit * jnp.abs(credit_B)
    bias_B = jnp.clip(ungroup(bias_NG), -bound_B, bound_B)
    return CreditOut(credit_B + jnp.where(ungroup(chosen_NG) > 0, bias_B, 0.0))
