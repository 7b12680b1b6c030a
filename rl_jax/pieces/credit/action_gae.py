"""POAD: discounting between actions, not between the tokens of one."""

from typing import ClassVar

import chex
import jax.numpy as jnp

from rl_jax.checks import chosen, ranged
from rl_jax.pieces.ops.masking import at_last_token, reverse_linear_scan
from rl_jax.pieces.ops.segments import SOURCES, next_kept, segment_starts
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Trajectories


def _advantage(piece, reward: Array, traj: Trajectories) -> Array:
  """Bellman backup with action decomposition over trained tokens."""
  mask_BT, values_BT = traj.mask_BT, traj.values_BT
  reward_BT = at_last_token(reward, mask_BT) if reward.ndim == 1 else reward
  chex.assert_equal_shape([reward_BT, mask_BT, values_BT])
  kept_BT = (mask_BT > 0).astype(jnp.float32)
  start_BT = segment_starts(traj, piece.segments).astype(jnp.float32)
  ends_BT = next_kept(start_BT, mask_BT) > 0
  gamma_BT = jnp.where(ends_BT, piece.gamma, 1.0)
  next_BT = next_kept(values_BT, mask_BT)
  delta_BT = reward_BT + gamma_BT * next_BT - values_BT
  decay_BT = jnp.where(kept_BT > 0, gamma_BT * piece.lam, 1.0)
  return kept_BT * reverse_linear_scan(kept_BT * delta_BT, decay_BT)


@piece
class ActionGAE:
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
  role: ClassVar[str] = 'credit'
  needs: ClassVar[tuple[str, ...]] = ('values',)

  def __call__(self, credit: Array, traj: Trajectories) -> Array:
    """[B] or [B, T] -> [B, T]."""
    return _advantage(self, credit, traj)


@piece
class ActionReturn:
  """Targets of the value head: ActionGAE(gamma, lam, segments) + V.

  Source: morning9393/ADRL language_buffer.py.
  """

  gamma: float = ranged(0.95, 0.0, 1.0)  # discount per action
  lam: float = ranged(0.95, 0.0, 1.0)  # per token
  segments: str = chosen('turns', SOURCES)
  role: ClassVar[str] = 'value_target'
  needs: ClassVar[tuple[str, ...]] = ('values',)

  def __call__(self, reward: Array, traj: Trajectories) -> Array:
    """Shaped rewards [B] or [B, T] -> returns [B, T]."""
    advantage_BT = _advantage(self, reward, traj)
    return jnp.where(traj.mask_BT > 0, advantage_BT + traj.values_BT, 0.0)
