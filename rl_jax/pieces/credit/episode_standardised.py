"""PPDPP: returns of turns, standardised within their episode."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.masking import masked_center, safe_divide, safe_sqrt
from rl_jax.pieces.ops.turns import turn_view
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class EpisodeStandardised(Credit):
  """A_k = (G_k - mean G) / (std G + eps) over the turns of an episode.

    G_k = r_k + gamma G_{k+1}

  ddof 1 as torch's std. An episode of one turn keeps its return, equal returns
  are 0. Two turns are always +-1/sqrt(2), whatever they earned.
  Source: "Plug-and-Play Policy Planner for Large Language Model Powered
  Dialogue Agents"; dengyang17/PPDPP agent.py.
  """

  gamma: float = ranged(0.999, 0.0, 1.0)  # discount per turn
  eps: float = ranged(1e-8, 0.0)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    reward, traj = ctx.credit, ctx.traj
    view = turn_view(traj)
    played_BK = view.played_BK
    return_BK = view.returns(view.rewards(reward), self.gamma) * played_BK
    turns_B1 = played_BK.sum(axis=1, keepdims=True)
    apart_BK = masked_center(return_BK, played_BK, axis=1)
    squares_B1 = (apart_BK**2).sum(axis=1, keepdims=True)
    std_B1 = safe_sqrt(safe_divide(squares_B1, turns_B1 - 1.0))
    scaled_BK = safe_divide(apart_BK, std_B1 + self.eps)
    return CreditOut(
      view.on_tokens(jnp.where(turns_B1 > 1, scaled_BK, return_BK))
    )
