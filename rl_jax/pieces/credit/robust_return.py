"""DR-RPO: rewards cut where the worst case of a total-variation ball does."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import by_group, ungroup
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class RobustReturn(Credit):
  """min(R_k, a), a the smallest reward that at most rho n of n rewards exceed.

  Over the valid rows of a group; to be centred next (GroupCenter). The smallest
  mean of R under distributions within total variation rho of the group's is

    max_a mean_k min(R_k, a) - rho (a - min R)

  reached at that a: a mass of rho moves from the best responses to the worst.
  Its policy gradient, with the moved-to minimum fixed, is that of min(R, a), a
  without gradient; the piece gives no more than that. 0 on invalid rows. rho 0,
  and any rho < 1 / n, leave R as it is. Of rewards 0 and 1, groups with more
  than rho n right rows stay as they are and others are equal: use graded
  rewards.
  Source: ours, after "Policy Regularized Distributionally Robust MDPs with
  Linear Function Approximation" (DR-RPO), which has no language model. There
  every factor of the transitions moves in a ball; here the distribution of the
  group's responses does.
  """

  rho: float = ranged(0.25, 0.0, 1.0, open_high=True)  # total variation
  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()
    credit_NG = by_group(credit_B, traj.group_size)
    valid_NG = by_group(traj.valid_B, traj.group_size) > 0
    above_NGG = credit_NG[:, None, :] > credit_NG[:, :, None]
    above_NG = (above_NGG & valid_NG[:, None, :]).sum(-1)
    # Counts are whole; 1e-3 is for the rounding of rho.
    most_N1 = self.rho * valid_NG.sum(1, keepdims=True) + 1e-3
    cut_NG = jnp.where(valid_NG & (above_NG <= most_N1), credit_NG, jnp.inf)
    least_N1 = cut_NG.min(1, keepdims=True)
    return CreditOut(
      ungroup(jnp.where(valid_NG, jnp.minimum(credit_NG, least_N1), 0.0))
    )
