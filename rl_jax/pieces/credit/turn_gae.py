"""Generalised advantage estimation with turns as steps."""

from typing import Any, ClassVar

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces.ops.returns import next_kept
from rl_jax.pieces.ops.scan import reverse_linear_scan
from rl_jax.pieces.ops.turns import TurnView, turn_view
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Trajectories, static


def _of_turns(
  view: TurnView, reward_BK, value_BK, gamma, lam, behind_BK=0.0
) -> Array:
  """GAE over the columns; V behind the last turn is behind_BK there, A is 0."""
  value_BK = value_BK * view.played_BK
  next_BK = jnp.pad(value_BK[:, 1:], ((0, 0), (0, 1))) + behind_BK
  delta_BK = view.played_BK * (reward_BK + gamma * next_BK - value_BK)
  decay_BK = jnp.broadcast_to(jnp.asarray(gamma * lam), delta_BK.shape)
  return reverse_linear_scan(delta_BK, decay_BK)


def _first_values(view: TurnView, values_BT: Array) -> Array:
  """V at the first trained token of each turn."""
  return view.total(jnp.where(view.first_BT > 0, values_BT, 0.0))


def _behind(view: TurnView, traj: Trajectories) -> Array:
  """V at the last token of the last turn of a cut episode, else 0, [B, K]."""
  left_BK = jnp.cumsum(view.played_BK[:, ::-1], axis=1)[:, ::-1]
  cut_BK = view.played_BK * (left_BK == 1) * (~traj.finished_B)[:, None]
  end_BT = jnp.where(view.last_BT() > 0, traj.values_BT, 0.0)
  return cut_BK * view.total(end_BT)


def _turn_gae(fields: Any, reward: Array, traj: Trajectories):
  """(the turns, their advantages and values [B, K]) of TurnGAE's fields."""
  view = turn_view(traj)
  value_BK = _first_values(view, traj.values_BT)
  behind_BK = _behind(view, traj) if fields.bootstrap else 0.0
  args = view.rewards(reward), value_BK, fields.gamma, fields.lam, behind_BK
  return view, _of_turns(view, *args), value_BK


@piece
class TurnGAE:
  """A_k = delta_k + gamma lam A_{k+1}, delta_k = r_k + gamma V_{k+1} - V_k.

  V_k is the value at the first trained token of turn k. Behind the last turn it
  is 0; with `bootstrap` it is V at the last token of a cut episode, of one that
  has not finished (by Reply.truncated or a limit of rollout.turns), as in
  ExtendedGAE: what the policy would read next is in no record. All tokens of a
  turn have its advantage.
  Source: "High-Dimensional Continuous Control Using Generalized Advantage
  Estimation", with a turn as the step.
  """

  gamma: float = ranged(1.0, 0.0, 1.0)  # discount per turn
  lam: float = ranged(0.95, 0.0, 1.0)
  bootstrap: bool = static(default=False)
  role: ClassVar[str] = 'credit'
  needs: ClassVar[tuple[str, ...]] = ('values',)

  def __call__(self, reward: Array, traj: Trajectories) -> Array:
    """[B] or [B, T] -> [B, T]."""
    view, advantage_BK, _ = _turn_gae(self, reward, traj)
    return view.on_tokens(advantage_BK)


@piece
class TurnLambdaReturn:
  """Targets of the value head: TurnGAE(gamma, lam) + V_k on tokens of turn k.

  Source: as TurnGAE.
  """

  gamma: float = ranged(1.0, 0.0, 1.0)  # discount per turn
  lam: float = ranged(0.95, 0.0, 1.0)
  bootstrap: bool = static(default=False)
  role: ClassVar[str] = 'value_target'
  needs: ClassVar[tuple[str, ...]] = ('values',)

  def __call__(self, reward: Array, traj: Trajectories) -> Array:
    """Shaped rewards [B] or [B, T] -> returns [B, T]."""
    view, advantage_BK, value_BK = _turn_gae(self, reward, traj)
    return view.on_tokens(advantage_BK + value_BK)


@piece
class BiLevelGAE:
  """GAE over the ends of turns, then within each turn (StarPO).

    d_k = r_k + gamma_turn V(e_{k+1}) - V(e_k), e_k the last token of turn k
    A(e_k) = d_k + gamma_turn lam A(e_{k+1})
    A_t = gamma V_{t+1} - V_t + gamma lam A_{t+1} before e_k

  V behind the last turn is 0. gamma_turn = gamma is GAE where turns have one
  token.
  Source: "RAGEN: Understanding Self-Evolution in LLM Agents via Multi-Turn
  Reinforcement Learning"; ragen/trainer/core_algos.py, which finds turns by
  rewards that are not 0.
  """

  gamma_turn: float = ranged(0.95, 0.0, 1.0)  # between turns
  gamma: float = ranged(1.0, 0.0, 1.0)  # per token within a turn
  lam: float = ranged(1.0, 0.0, 1.0)
  role: ClassVar[str] = 'credit'
  needs: ClassVar[tuple[str, ...]] = ('values',)

  def __call__(self, reward: Array, traj: Trajectories) -> Array:
    """[B] or [B, T] -> [B, T]."""
    view, values_BT = turn_view(traj), traj.values_BT
    last_BT = view.last_BT()
    end_BK = view.total(jnp.where(last_BT > 0, values_BT, 0.0))
    args = (view.rewards(reward), end_BK, self.gamma_turn, self.lam)
    at_end_BT = view.on_last(_of_turns(view, *args))
    next_BT = next_kept(values_BT, traj.mask_BT)
    kept_BT = (traj.mask_BT > 0).astype(jnp.float32)
    inside_BT = jnp.where(last_BT > 0, 0.0, self.gamma * next_BT - values_BT)
    decay_BT = jnp.where(kept_BT > 0, self.gamma * self.lam, 1.0)
    decay_BT = jnp.where(last_BT > 0, 0.0, decay_BT)
    step_BT = at_end_BT + jnp.where(kept_BT > 0, inside_BT, 0.0)
    return kept_BT * reverse_linear_scan(step_BT, decay_BT)
