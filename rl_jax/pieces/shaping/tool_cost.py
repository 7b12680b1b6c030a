"""OTC: right answers are worth most with the fewest tool calls that suffice."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.ops.masking import by_group
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping
from rl_jax.types import Array, Trajectories, static


@piece
class ToolCost(Shaping):
  """alpha * w * R, w in [0, 1] by the number m of tool calls of the episode.

    w = cos(m pi / (2 m + smoothing))                   without `compared`
    n = least m of the right rows of the group          with it
    w = sin(f pi / (2 n)), f = 2 n m / (n + m)          n > 0, largest at m = n
    w = cos(m pi / (2 m + smoothing))                   n = 0

  A group without a right row takes the least m of all its valid rows. Rows
  without a record of turns have m = 0. The reward of the whole episode is
  multiplied, so components that are not outcomes are, too.
  Source: "OTC: Optimal Tool Calls via Reinforcement Learning", sections 3.1 to
  3.3; reconstructed, values of alpha and smoothing are not in the text.
  """

  alpha: float = ranged(1.0, 0.0, open_low=True)
  smoothing: float = ranged(1.0, 0.0, open_low=True)  # c, in calls
  correct_above: float = 0.5  # see row_inputs.right_B
  compared: bool = static(default=True)

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj = ctx.per_row()
    if traj.turns is None:
      return CreditOut(self.alpha * reward_B)
    call_B = traj.turns.calls_BK.sum(axis=1).astype(jnp.float32)
    alone_B = jnp.cos(call_B * jnp.pi / (2.0 * call_B + self.smoothing))
    if not self.compared:
      return CreditOut(self.alpha * alone_B * reward_B)
    least_B = self._least(call_B, traj)
    # Nowhere 0, also where it is not taken.
    both_B = jnp.maximum(least_B + call_B, 1.0)
    f_B = 2.0 * least_B * call_B / both_B
    near_B = jnp.sin(f_B * jnp.pi / (2.0 * jnp.maximum(least_B, 1.0)))
    weight_B = jnp.where(least_B > 0, near_B, alone_B)
    return CreditOut(self.alpha * weight_B * reward_B)

  def _least(self, call_B: Array, traj: Trajectories):
    """n of the group, on each of its rows."""
    right_B = row_inputs.right_B(traj, self.correct_above)

    def least(here_B: Array):
      return by_group(jnp.where(here_B, call_B, jnp.inf), traj.group_size).min(
        axis=1
      )

    right_N, valid_N = least(right_B), least(traj.valid_B > 0)
    found_N = jnp.where(jnp.isfinite(right_N), right_N, valid_N)
    found_N = jnp.where(jnp.isfinite(found_N), found_N, 0.0)
    return jnp.repeat(found_N, traj.group_size)
