"""EPO: returns of turns over the largest of their episode."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import safe_divide
from rl_jax.pieces.ops.turns import turn_view
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class EpisodeNormalised(Credit):
  """A_t = w_k / (n T_k) on the T_k tokens of turn k, n turns.

    G_k = r_k + gamma G_{k+1},  w_k = G_k / max_j |G_j|, 0 if all are 0

  Sums over tokens are then means over turns of means over tokens. The largest
  |w| is 1 in every episode that earned anything, a failure as much as a success
  where rewards may be negative; there is no baseline.
  Source: "EPO: Explicit Policy Optimization for Strategic Reasoning in LLMs via
  Reinforcement Learning"; lxqpku/EPO preprocessing.py (weighted likelihood of
  recorded rows).
  """

  gamma: float = ranged(0.99, 0.0, 1.0)  # discount per turn

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    reward, traj = ctx.credit, ctx.traj
    view = turn_view(traj)
    return_BK = view.returns(view.rewards(reward), self.gamma) * view.played_BK
    largest_B1 = jnp.abs(return_BK).max(axis=1, keepdims=True)
    tokens_BK = view.total(jnp.ones_like(traj.mask_BT))
    turns_B1 = view.played_BK.sum(axis=1, keepdims=True)
    share_BK = safe_divide(return_BK, largest_B1)
    return CreditOut(
      view.on_tokens(safe_divide(share_BK, tokens_BK * turns_B1))
    )
