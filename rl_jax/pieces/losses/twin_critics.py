"""Digi-Q: squared errors of two critics of states and two of actions."""

from typing import Any

import chex
import jax.numpy as jnp

from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import at_last_token
from rl_jax.pieces.ops.turns import turn_view
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.pieces.roles import LossContext, LossOut, ValueLoss


@piece
class TwinCritics(ValueLoss):
  """l_t = first_t sum_i (V_i - ret_i)^2 + last_t sum_i (Q_i - ret_{2+i})^2.

  i = 1, 2; first and last are 1 on the first and last trained token of a turn,
  V is read before the one, Q after the other (credit.TwinTargets). Q after
  the last turn of a cut episode has no target, as its next state is not known;
  a single response that ended at the token limit was judged and has one.
  In a batch of recorded and sampled rows only the recorded ones count; else all
  rows count.
  Source: as credit.TwinTargets ("bellman", regression).
  """

  aggregation: Any = None  # overrides the method's
  per_token = True
  needs = ('value_heads', 'value_heads_after')
  num_values = 4

  def check(self, context: CheckContext) -> None:
    """Raises ValueError unless the targets have as many outputs."""
    method = context.method
    target = method.value_target
    if target is None or target.num_values != self.num_values:
      raise ValueError(
        'TwinCritics needs method.value_target: TwinTargets(); it is '
        f'{method.value_target}'
      )

  def __call__(self, ctx: LossContext) -> LossOut:
    """Loss [B, T]."""
    stats, traj = ctx.stats, ctx.traj
    value_BT2 = stats['value_heads'][..., :2]
    q_BT2 = stats['value_heads_after'][..., 2:4]
    chex.assert_equal_shape([value_BT2, q_BT2, traj.returns_BTH[..., 2:]])
    turns = turn_view(traj)
    value_error_BT = ((value_BT2 - traj.returns_BTH[..., :2]) ** 2).sum(-1)
    error_BT = ((q_BT2 - traj.returns_BTH[..., 2:]) ** 2).sum(-1)
    cut_B = row_inputs.cut_B(traj).astype(jnp.float32)
    error_BT *= turns.last_BT() * (1.0 - at_last_token(cut_B, traj.mask_BT))
    loss_BT = turns.first_BT * value_error_BT + error_BT
    counts_B = traj.extras.get('logged_B', jnp.ones_like(traj.weight_B))
    return LossOut(
      counts_B[:, None] * loss_BT,
      {
        'value/mean': value_BT2[..., 0],
        'value/td_error': counts_B[:, None] * error_BT,
      },
    )
