"""APO (View-R1), STCR: larger negative advantages for long wrong responses."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import by_group, masked_mean, ungroup
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.pieces.row_inputs import policy_tokens_B, right_B
from rl_jax.types import Array


@piece
class LongWrongScale(Credit):
  """A_k * (2 - b^-(T_k - mean right length)) for longer wrong rows.

  b = 1 + growth. Only in groups with a right row, and only where T_k exceeds
  the mean. T counts the tokens of a response that the environment has not said.
  Source: "Asymmetric Policy Optimization" (View-R1); Indolent-Kawhi/View-R1
  experience_maker.py.
  """

  # Per token; 1000 tokens give a factor 1.00995.
  growth: float = ranged(1e-5, 0.0)
  correct_above: float = 0.5  # see row_inputs.right_B
  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()

    def grouped(x_B: Array):
      return by_group(x_B, traj.group_size)

    length_NG = grouped(policy_tokens_B(traj, traj.length_B))
    right_NG = grouped(right_B(traj, self.correct_above))
    mean_N1 = masked_mean(
      length_NG, right_NG.astype(jnp.float32), axis=1, keepdims=True
    )
    excess_NG = jnp.maximum(length_NG - mean_N1, 0.0)
    # log1p: 1 + 1e-5 has three right digits in float32.
    factor_NG = 2.0 - jnp.exp(-excess_NG * jnp.log1p(self.growth))
    longer_NG = ~right_NG & right_NG.any(1, keepdims=True)
    return CreditOut(
      ungroup(grouped(credit_B) * jnp.where(longer_NG, factor_NG, 1.0))
    )
