"""Responses that do not end have their own reward."""

import jax.numpy as jnp

from rl_jax.checks import ranged
from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import CreditContext, CreditOut, Shaping


@piece
class NonStop(Shaping):
  """R = penalty where the response was cut at its limit, else R.

  A response that continues in the next iteration has not reached its limit.

  Source: allenai/open-instruct (Tulu 3, non_stop_penalty with -10), by a digest
  of its documentation.
  """

  penalty: float = ranged(-10.0)  # the whole reward of such a row

  def __call__(self, ctx: CreditContext) -> CreditOut:
    """[B] -> [B]."""
    reward_B, traj = ctx.credit, ctx.traj
    kept_B = traj.finished_B | (row_inputs.waits_B(traj) > 0)
    return CreditOut(jnp.where(kept_B, reward_B, self.penalty))
