"""Digi-Q: advantages and temporal-difference targets of two critics."""

from typing import Any

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import last_token, masked_sum, zero_masked
from rl_jax.pieces.ops.returns import next_kept
from rl_jax.pieces.ops.turns import turn_view
from rl_jax.pieces.piece import piece
from rl_jax.pieces.policies import Average
from rl_jax.pieces.roles import Credit, CreditContext, CreditOut, ValueTarget
from rl_jax.pieces.statistics.critic_value import CriticValue
from rl_jax.types import Array, Trajectories

_NEEDS = ('value_heads', 'value_heads_after')
_POLICY = 'slow_critics'
_SLOW = (
  *(CriticValue(_POLICY, head) for head in (0, 1)),
  *(CriticValue(_POLICY, head, after=True) for head in (2, 3)),
)


@piece
class TwinAdvantage(Credit):
  """A = max(Q_1, Q_2)(s, a) - max(V_1, V_2)(s) of a row that is one action.

  The outputs of the value head are V_1, V_2, Q_1, Q_2: V before the first
  trained token of the row, where the model has read the state, Q after its
  last one. A row that was cut is not a whole action, and has A = 0. Rewards are
  not read; values are of the weights that were scored. Rows of several actions
  train critics only, so what they get here is of no use.
  Source: "Digi-Q: Learning Q-Value Functions for Training Device-Control
  Agents"; DigiRL-agent/digiq trainer.py, which takes the larger of two, not the
  smaller.
  """

  needs = _NEEDS
  num_values = 4

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    credit_B, traj = ctx.per_row()
    after_BTH = row_inputs.read(traj, 'value_heads_after')
    mask_BT, first_BT = traj.mask_BT, _first(traj.mask_BT)
    value_B = masked_sum(traj.values_BTH[..., :2].max(-1), first_BT, axis=1)
    advantage_B = last_token(after_BTH[..., 2:4].max(-1), mask_BT) - value_B
    return CreditOut(jnp.where(traj.finished_B, advantage_B, 0.0))


@piece
class TwinTargets(ValueTarget):
  """ret = (Q_1(s, a), Q_2(s, a), r + gamma V_1(s'), r + gamma V_2(s')).

  Of V_1, V_2, Q_1, Q_2 for the turn (s, a, r, s') of each token: r is what the
  turn earned, V(s') is read before the next turn, and is 0 after the last. V
  thus becomes the mean of Q over the recorded actions. With `decay` values are
  those of slow critics, a moving average of the weights; without it they are of
  the weights that were scored. A reward [B] is that of the last turn.
  Source: as TwinAdvantage, whose targets are moving averages (tau 0.1 a step of
  the critics, a decay of 0.9).
  """

  gamma: float = ranged(0.95, 0.0, 1.0)  # discount per turn
  decay: float | None = ranged(None, 0.0, 1.0)  # an iteration
  num_values = 4

  @property
  def needs(self) -> tuple[Any, ...]:
    """All heads, and those of the slow critics if there are any."""
    return _NEEDS if self.decay is None else (*_NEEDS, *_SLOW)

  @property
  def policies(self) -> dict[str, Any]:
    """The slow critics."""
    if self.decay is None:
      return {}
    return {_POLICY: Average(decay=self.decay)}

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """Shaped rewards [B] or [B, T] -> targets [B, T, 4]."""
    reward, traj = ctx.credit, ctx.traj
    turns, values = turn_view(traj), self._values(traj)
    targets: list[Array] = []
    last_BT = turns.last_BT()
    for q_BT in values[2:]:
      q_BK = turns.total(zero_masked(q_BT, last_BT))
      targets.append(turns.on_tokens(q_BK))
    for value_BT in values[:2]:
      value_BK = turns.total(zero_masked(value_BT, turns.first_BT))
      next_BK = next_kept(value_BK, turns.played_BK)
      target_BK = turns.rewards(reward) + self.gamma * next_BK
      targets.append(turns.on_tokens(target_BK))
    return CreditOut(jnp.stack(targets, axis=-1))

  def _values(self, traj: Trajectories):
    """V_1, V_2 before tokens, Q_1, Q_2 after them, each [B, T]."""
    if self.decay is not None:
      return [row_inputs.read(traj, need.name) for need in _SLOW]
    after_BTH = row_inputs.read(traj, 'value_heads_after')
    before = [traj.values_BTH[..., head] for head in (0, 1)]
    return before + [after_BTH[..., head] for head in (2, 3)]


def _first(mask_BT: Array):
  """1 on the first kept token of each row."""
  kept_BT = (mask_BT > 0).astype(jnp.int32)
  return ((kept_BT == 1) & (kept_BT.cumsum(1) == 1)).astype(jnp.float32)
