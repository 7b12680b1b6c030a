"""XRPO: right answers that were unlikely get a larger advantage."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import by_group, masked_mean, ungroup
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.pieces.row_inputs import right_B


@piece
class NoveltySharpening(Credit):
  """A_k + min(max(coef (1 - eta_k), 0), limit max(A_k, 0)) on right rows.

    eta_k = exp(s_k - mean of s over the group's valid rows)
    s_k = mean_t logp_old_t

  Other rows are unchanged.
  Source: "XRPO: Pushing the Limits of GRPO with Targeted Exploration and
  Exploitation", from reviews of the paper.
  """

  coef: float = ranged(2.5, 0.0)
  limit: float = ranged(0.5, 0.0)  # largest bonus as a share of A
  correct_above: float = 0.5  # see row_inputs.right_B
  needs = ('logp',)
  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()
    score_B = masked_mean(traj.logp_old_BT, traj.mask_BT, axis=1)
    score_NG = by_group(score_B, traj.group_size)
    valid_NG = by_group(traj.valid_B, traj.group_size)
    mean_N1 = masked_mean(score_NG, valid_NG, axis=1, keepdims=True)
    eta_B = ungroup(jnp.exp(score_NG - mean_N1))
    bonus_B = jnp.maximum(self.coef * (1.0 - eta_B), 0.0)
    most_B = self.limit * jnp.maximum(credit_B, 0.0)
    bonus_B = jnp.minimum(bonus_B, most_B)
    is_right_B = right_B(traj, self.correct_above)
    return CreditOut(credit_B + jnp.where(is_right_B, bonus_B, 0.0))
