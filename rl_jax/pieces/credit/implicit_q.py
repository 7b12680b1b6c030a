"""Implicit Q-learning: advantages and targets of the heads V, Q_1 and Q_2."""

from typing import ClassVar

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import on_tokens, zero_masked
from rl_jax.pieces.ops.returns import next_kept
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Trajectories


def _smaller_q(traj: Trajectories) -> Array:
  """min(Q_1, Q_2) of every token, [B, T]: the heads behind it."""
  heads_BTH = row_inputs.read(traj, 'value_heads_after')
  return zero_masked(heads_BTH[..., 1:3].min(axis=-1), traj.mask_BT)


@piece
class ImplicitAdvantage:
  """A_t = min(Q_1, Q_2)(s_t, y_t) - V(s_t); rewards are not read.

  V is the first head before the token, the Q are the second and third behind
  it, where the model has read state and action. All are those of the weights
  that were scored.
  Source: Snell et al., "Offline RL for Natural Language Generation with
  Implicit Language Q Learning"; Sea-Snell/Implicit-Language-Q-Learning
  iql_model.py, whose Q have an output for every token of the vocabulary.
  """

  role: ClassVar[str] = 'credit'
  needs: ClassVar[tuple[str, ...]] = ('value_heads', 'value_heads_after')
  num_values: ClassVar[int] = 3

  def __call__(self, credit: Array, traj: Trajectories) -> Array:
    """[B] or [B, T] -> [B, T]."""
    del credit
    value_BT = zero_masked(traj.values_BTH[..., 0], traj.mask_BT)
    return _smaller_q(traj) - value_BT


@piece
class ImplicitTargets:
  """ret = (min(Q_1, Q_2), r_t + gamma V(s'), the same) for V, Q_1 and Q_2.

  s' is what the policy faces at its next trained token; behind the last one V
  is 0. Values are those of the weights that were scored, which stand for the
  target networks. A reward [B] is placed on the last trained token.
  Source: as ImplicitAdvantage, whose targets are moving averages.
  """

  gamma: float = ranged(0.99, 0.0, 1.0)  # discount per token
  role: ClassVar[str] = 'value_target'
  needs: ClassVar[tuple[str, ...]] = ('value_heads', 'value_heads_after')
  num_values: ClassVar[int] = 3

  def __call__(self, reward: Array, traj: Trajectories) -> Array:
    """Shaped rewards [B] or [B, T] -> targets [B, T, 3]."""
    reward_BT = on_tokens(reward, traj.mask_BT)
    next_BT = next_kept(traj.values_BTH[..., 0], traj.mask_BT)
    q_BT = reward_BT + self.gamma * next_BT
    return jnp.stack([_smaller_q(traj), q_BT, q_BT], axis=-1)
