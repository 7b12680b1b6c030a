"""Rewards where they were earned: at the ends of turns."""

from rl_jax.pieces.ops.masking import on_tokens
from rl_jax.pieces.ops.turns import turn_view
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping


@piece
class TurnRewards(Shaping):
  """The reward of turn k on its last trained token; the sum stays the same.

    r_t = r_k at the end of turn k, and R - sum_k r_k at the end of the row

  The second part is what pieces before this one have changed of the reward. A
  row without turns has its whole reward at its end.
  Source: "A Practitioner's Guide to Multi-turn Agentic Reinforcement Learning";
  pearls-lab/meow-tea-taro agentic_verified.py.
  """

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B, T]."""
    reward_B, traj = ctx.per_row()
    if traj.turns is None:
      return CreditOut(on_tokens(reward_B, traj.mask_BT))
    reward_BK, view = traj.turns.reward_BK, turn_view(traj)
    rest_B = reward_B - (reward_BK * view.played_BK).sum(axis=1)
    return CreditOut(view.on_last(reward_BK) + on_tokens(rest_B, traj.mask_BT))
