"""Generalised advantage estimation over turns, then within each (StarPO)."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.returns import next_kept
from rl_jax.pieces.ops.scan import reverse_linear_scan
from rl_jax.pieces.ops.turns import turn_advantages, turn_view
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut


@piece
class BiLevelGAE(Credit):
  """GAE over the ends of turns, then within each turn (StarPO).

    d_k = r_k + gamma_turn V(e_{k+1}) - V(e_k), e_k the last token of turn k
    A(e_k) = d_k + gamma_turn lam A(e_{k+1})
    A_t = gamma V_{t+1} - V_t + gamma lam A_{t+1} before e_k

  V after the last turn is 0. gamma_turn = gamma is GAE where turns have one
  token.
  Source: "RAGEN: Understanding Self-Evolution in LLM Agents via Multi-Turn
  Reinforcement Learning"; ragen/trainer/core_algos.py, which finds turns by
  rewards that are not 0.
  """

  gamma_turn: float = ranged(0.95, 0.0, 1.0)  # between turns
  gamma: float = ranged(1.0, 0.0, 1.0)  # per token within a turn
  lam: float = ranged(1.0, 0.0, 1.0)
  needs = ('values',)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    reward, traj = ctx.credit, ctx.traj
    view, values_BT = turn_view(traj), traj.values_BT
    last_BT = view.last_BT()
    end_BK = view.total(jnp.where(last_BT > 0, values_BT, 0.0))
    args = (view.rewards(reward), end_BK, self.gamma_turn, self.lam)
    at_end_BT = view.on_last(turn_advantages(view, *args))
    next_BT = next_kept(values_BT, traj.mask_BT)
    kept_BT = (traj.mask_BT > 0).astype(jnp.float32)
    inside_BT = jnp.where(last_BT > 0, 0.0, self.gamma * next_BT - values_BT)
    decay_BT = jnp.where(kept_BT > 0, self.gamma * self.lam, 1.0)
    decay_BT = jnp.where(last_BT > 0, 0.0, decay_BT)
    step_BT = at_end_BT + jnp.where(kept_BT > 0, inside_BT, 0.0)
    return CreditOut(kept_BT * reverse_linear_scan(step_BT, decay_BT))
