"""Thinkless: a right answer in the cheap mode earns more."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping


@piece
class ModeRewards(Shaping):
  """R becomes `instant` or `thought` for a right response, else `wrong`.

  `instant` in mode 0 of extras['mode_B'], `thought` in all others. What R was
  does not count: right is the component `outcome`, see row_inputs.right_B.
  Source: Thinkless (DeGRPO); VainF/Thinkless deepscaler/rewards/math_reward.py
  (1, 0.5 and -1).
  """

  instant: float = ranged(1.0)
  thought: float = ranged(0.5)
  wrong: float = ranged(-1.0)
  correct_above: float = 0.5  # see row_inputs.right_B

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj = ctx.per_row()
    instant_B = row_inputs.read(traj, 'mode_B') == 0
    right_B = row_inputs.right_B(traj, self.correct_above)
    value_B = jnp.where(instant_B, self.instant, self.thought)
    return CreditOut(jnp.where(right_B, value_B, self.wrong))
