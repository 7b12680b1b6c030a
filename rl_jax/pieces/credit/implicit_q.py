"""Implicit Q-learning: advantages and targets of V, Q_1 and Q_2."""

from typing import Any

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import on_tokens, zero_masked
from rl_jax.pieces.ops.returns import next_kept
from rl_jax.pieces.piece import piece
from rl_jax.pieces.policies import Average
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut, ValueTarget
from rl_jax.pieces.statistics.action_values import ActionValues
from rl_jax.types import Array, Trajectories

_OWN, _TARGETS = ActionValues(), ActionValues('targets')


def _value(traj: Trajectories) -> Array:
  """V before every token, [B, T]."""
  values_BT3 = row_inputs.read(traj, _OWN.name)
  return zero_masked(values_BT3[..., 0], traj.mask_BT)


def _target_q(traj: Trajectories) -> Array:
  """min(Q_1, Q_2) of every token under the target copy, [B, T]."""
  values_BT3 = row_inputs.read(traj, _TARGETS.name)
  return zero_masked(values_BT3[..., 1:].min(axis=-1), traj.mask_BT)


@piece
class ImplicitAdvantage(Credit):
  """A_t = min(Q_1, Q_2)(s_t, y_t) - V(s_t); rewards are not read.

  The Q are those of the target copy, a moving average of the weights, V that of
  the weights that were scored.
  Source: Snell et al., "Offline RL for Natural Language Generation with
  Implicit Language Q Learning"; Sea-Snell/Implicit-Language-Q-Learning
  iql_model.py.
  """

  decay: float = ranged(0.995, 0.0, 1.0)  # of the copy, an iteration
  needs = (_OWN, _TARGETS)

  @property
  def policies(self) -> dict[str, Any]:
    """The target copy."""
    return {_TARGETS.policy: Average(decay=self.decay)}

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] or [B, T] -> [B, T]."""
    traj = ctx.traj
    return CreditOut(_target_q(traj) - _value(traj))


@piece
class ImplicitTargets(ValueTarget):
  """ret = (min(Q_1, Q_2), r_t + gamma V(s'), the same) for V, Q_1 and Q_2.

  s' is what the policy faces at its next trained token; after the last one V
  is 0. The Q are those of the target copy, a moving average of the weights, V
  is that of the weights that were scored, all without gradient. A reward [B] is
  placed on the last trained token.
  Source: as ImplicitAdvantage.
  """

  gamma: float = ranged(0.99, 0.0, 1.0)  # discount per token
  decay: float = ranged(0.995, 0.0, 1.0)  # of the copy, an iteration
  num_targets = 3
  needs = (_OWN, _TARGETS)

  @property
  def policies(self) -> dict[str, Any]:
    """The target copy."""
    return {_TARGETS.policy: Average(decay=self.decay)}

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """Shaped rewards [B] or [B, T] -> targets [B, T, 3]."""
    reward, traj = ctx.credit, ctx.traj
    reward_BT = on_tokens(reward, traj.mask_BT)
    q_BT = reward_BT + self.gamma * next_kept(_value(traj), traj.mask_BT)
    return CreditOut(jnp.stack([_target_q(traj), q_BT, q_BT], axis=-1))
