"""Returns of turns, and their unbiased baseline from the group."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import by_group, safe_divide, ungroup
from rl_jax.pieces.ops.turns import turn_view
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class TurnReturn(Credit):
  """A_k = G_k = r_k + gamma G_{k+1} on all tokens of turn k.

  Tokens inside a turn are not discounted, so that long words cost nothing.
  Source: REINFORCE with turns as steps; "LMRL Gym" discounts tokens instead.
  """

  gamma: float = ranged(1.0, 0.0, 1.0)  # discount per turn

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    reward, traj = ctx.credit, ctx.traj
    view = turn_view(traj)
    return CreditOut(
      view.on_tokens(view.returns(view.rewards(reward), self.gamma))
    )


@piece
class TurnLeaveOneOut(Credit):
  """A_k = G_k - mean of G_k over the other rows that have reached turn k.

  The mean is over valid rows of the group; a row that is the only one at its
  turn keeps G_k. Unbiased: the baseline of a row does not depend on its own
  actions. Centring the reward of each turn and summing what follows is not, as
  the number of subtracted terms then depends on when the policy stops.
  Source: RLOO applied to the return of each turn; this code.
  """

  gamma: float = ranged(1.0, 0.0, 1.0)  # discount per turn
  min_group_size = 2

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    reward, traj = ctx.credit, ctx.traj
    view = turn_view(traj)
    return_BK = view.returns(view.rewards(reward), self.gamma)
    live_BK = view.played_BK * (traj.valid_B > 0)[:, None]
    live_NGK = by_group(live_BK, traj.group_size)
    return_NGK = by_group(
      jnp.where(live_BK > 0, return_BK, 0.0), traj.group_size
    )
    others_NGK = live_NGK.sum(axis=1, keepdims=True) - live_NGK
    sum_NGK = return_NGK.sum(axis=1, keepdims=True) - return_NGK
    baseline_BK = ungroup(safe_divide(sum_NGK, others_NGK))
    return CreditOut(view.on_tokens((return_BK - baseline_BK) * live_BK))
