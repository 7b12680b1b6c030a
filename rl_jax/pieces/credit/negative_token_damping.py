"""NTHR: smaller advantages on wrong tokens that resemble right ones."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.token_influence import influence, mixed, threshold
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.pieces.statistics.group_probs import GroupProbs


@piece
class NegativeTokenDamping(Credit):
  """NTHR: A_jk 2 |p - 1/2| on tokens of wrong rows with s_jk > tau, else A_jk.

    tau = beta min over right rows of mean_k s    p = share of right rows

  No gradient. A step that lowers the probability of a token with s_jk > tau
  would lower that of the right rows too. Groups without right or without wrong
  rows keep A.
  Source: "On the Effect of Negative Gradient in Group Relative Deep
  Reinforcement Optimization" (NTHR), from an implementation note.
  """

  beta: float = ranged(1.0, 0.0)
  correct_above: float = 0.5  # see row_inputs.right_B
  needs = ('hidden', GroupProbs())
  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B, T]."""
    credit_B, traj = ctx.per_row()
    right_B, wrong_B, share_B = mixed(traj, self.correct_above)
    s_BT = influence(traj, right_B)
    tau_B = self.beta * threshold(s_BT, right_B, traj)
    damped_BT = (s_BT > tau_B[:, None]) & (wrong_B * share_B > 0)[:, None]
    damping_B = 2.0 * jnp.abs(share_B - 0.5)
    factor_BT = jnp.where(damped_BT, damping_B[:, None], 1.0)
    return CreditOut(credit_B[:, None] * factor_BT)
