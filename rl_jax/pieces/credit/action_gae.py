"""POAD: discounting between actions, not between the tokens of one."""

from typing import Any

import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.masking import on_tokens
from rl_jax.pieces.ops.returns import lambda_advantage, next_kept, value_targets
from rl_jax.pieces.ops.segments import SOURCES, segment_starts
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut, ValueTarget
from rl_jax.types import Array, Trajectories


def _advantage(piece: Any, reward: Array, traj: Trajectories) -> Array:
  """Bellman backup with action decomposition over trained tokens."""
  mask_BT = traj.mask_BT
  start_BT = segment_starts(traj, piece.segments).astype(jnp.float32)
  ends_BT = next_kept(start_BT, mask_BT) > 0
  gamma_BT = jnp.where(ends_BT, piece.gamma, 1.0)
  next_BT = next_kept(traj.values_BT, mask_BT)
  reward_BT = on_tokens(reward, mask_BT)
  return lambda_advantage(reward_BT, next_BT, traj, gamma_BT, piece.lam)


@piece
class ActionGAE(Credit):
  """A_t = r_t + g_t V_{t+1} - V_t + g_t lam A_{t+1}.

  g_t = gamma on the last token of an action and 1 inside it, so that values of
  tokens and of actions agree. Actions are turns, or begin where
  extras['segment_start_BT'] says so. A reward [B] is put on the last token.
  Source: "Reinforcing Language Agents via Policy Optimization with Action
  Decomposition" (POAD, BAD); morning9393/ADRL language_buffer.py.
  """

  gamma: float = ranged(0.95, 0.0, 1.0)  # discount per action
  lam: float = ranged(0.95, 0.0, 1.0)  # per token
  segments: str = chosen('turns', SOURCES)
  needs = ('values',)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    credit, traj = ctx.credit, ctx.traj
    return CreditOut(_advantage(self, credit, traj))


@piece
class ActionReturn(ValueTarget):
  """Targets of the value head: ActionGAE(gamma, lam, segments) + V.

  Source: morning9393/ADRL language_buffer.py.
  """

  gamma: float = ranged(0.95, 0.0, 1.0)  # discount per action
  lam: float = ranged(0.95, 0.0, 1.0)  # per token
  segments: str = chosen('turns', SOURCES)
  needs = ('values',)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """Shaped rewards [B] or [B, T] -> returns [B, T]."""
    reward, traj = ctx.credit, ctx.traj
    advantage_BT = _advantage(self, reward, traj)
    return CreditOut(value_targets(advantage_BT, traj))
