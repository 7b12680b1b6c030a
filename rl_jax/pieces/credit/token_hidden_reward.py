"""THR: only tokens that move the right responses much are trained."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.token_influence import influence, mixed, threshold
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut
from rl_jax.pieces.statistics.group_probs import GroupProbs


@piece
class TokenHiddenReward(Credit):
  """A_jk (1 + direction sign(THR_jk)) where |THR_jk| > tau, else 0.

    THR_jk = s_jk in right rows, -s_jk in wrong ones (see `influence`)
    tau = beta min over right rows of mean_k |s|

  No gradient. Groups without right or without wrong rows keep A. direction > 0
  favours greedy accuracy, < 0 exploration; 0 trains the dominant tokens only.
  Source: "Token Hidden Reward" from public reviews; the rule is reconstructed,
  and so are tau (the heuristic of NTHR) and the values of direction.
  """

  direction: float = ranged(0.1, -1.0, 1.0)
  beta: float = ranged(1.0, 0.0)
  correct_above: float = 0.5  # see row_inputs.right_B
  needs = ('hidden', GroupProbs())
  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B, T]."""
    credit_B, traj = ctx.per_row()
    right_B, _, share_B = mixed(traj, self.correct_above)
    s_BT = influence(traj, right_B)
    tau_B = self.beta * threshold(jnp.abs(s_BT), right_B, traj)
    sign_BT = jnp.sign(s_BT) * jnp.where(right_B > 0, 1.0, -1.0)[:, None]
    factor_BT = jnp.where(
      jnp.abs(s_BT) > tau_B[:, None], 1.0 + self.direction * sign_BT, 0.0
    )
    factor_BT = jnp.where((share_B > 0)[:, None], factor_BT, 1.0)
    return CreditOut(credit_B[:, None] * factor_BT)
