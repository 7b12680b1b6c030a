"""Generalised advantage estimation with turns as steps."""

from typing import Any

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.turns import TurnView, turn_advantages, turn_view
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut, ValueTarget
from rl_jax.types import Array, Trajectories, static


def _first_values(view: TurnView, values_BT: Array) -> Array:
  """V at the first trained token of each turn."""
  return view.total(jnp.where(view.first_BT > 0, values_BT, 0.0))


def _behind(view: TurnView, traj: Trajectories) -> Array:
  """V at the last token of the last turn of a cut episode, else 0, [B, K]."""
  left_BK = jnp.cumsum(view.played_BK[:, ::-1], axis=1)[:, ::-1]
  cut_BK = view.played_BK * (left_BK == 1) * row_inputs.cut_B(traj)[:, None]
  end_BT = jnp.where(view.last_BT() > 0, traj.values_BT, 0.0)
  return cut_BK * view.total(end_BT)


def _turn_gae(fields: Any, reward: Array, traj: Trajectories):
  """(the turns, their advantages and values [B, K]) of TurnGAE's fields."""
  view = turn_view(traj)
  value_BK = _first_values(view, traj.values_BT)
  behind_BK = _behind(view, traj) if fields.bootstrap else 0.0
  args = view.rewards(reward), value_BK, fields.gamma, fields.lam, behind_BK
  return view, turn_advantages(view, *args), value_BK


@piece
class TurnGAE(Credit):
  """A_k = delta_k + gamma lam A_{k+1}, delta_k = r_k + gamma V_{k+1} - V_k.

  V_k is the value at the first trained token of turn k. After the last turn it
  is 0; with `bootstrap` it is V at the last token of a cut episode, of one that
  has not finished (by Reply.truncated or a limit of rollout.turns), or of a
  response that continues in the next iteration, as in ExtendedGAE: what the
  policy would read next is in no record. A single response that ended at the
  token limit was judged and is not cut. All tokens of a turn have its
  advantage.
  Source: "High-Dimensional Continuous Control Using Generalized Advantage
  Estimation", with a turn as the step.
  """

  gamma: float = ranged(1.0, 0.0, 1.0)  # discount per turn
  lam: float = ranged(0.95, 0.0, 1.0)
  bootstrap: bool = static(default=False)
  needs = ('values',)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    reward, traj = ctx.credit, ctx.traj
    view, advantage_BK, _ = _turn_gae(self, reward, traj)
    return CreditOut(view.on_tokens(advantage_BK))


@piece
class TurnLambdaReturn(ValueTarget):
  """Targets of the value head: TurnGAE(gamma, lam) + V_k on tokens of turn k.

  Source: as TurnGAE.
  """

  gamma: float = ranged(1.0, 0.0, 1.0)  # discount per turn
  lam: float = ranged(0.95, 0.0, 1.0)
  bootstrap: bool = static(default=False)
  needs = ('values',)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """Shaped rewards [B] or [B, T] -> returns [B, T]."""
    reward, traj = ctx.credit, ctx.traj
    view, advantage_BK, value_BK = _turn_gae(self, reward, traj)
    return CreditOut(view.on_tokens(advantage_BK + value_BK))
