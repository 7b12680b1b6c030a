"""Losses of reinforcement learning count on sampled rows only."""

import jax.numpy as jnp

from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import LossContext, LossOut, Weight
from rl_jax.types import static


@piece
class SampledRows(Weight):
  """w_t = 1 on rows that the policy has written, 0 on rows from data.

  On losses [B, T] of the roles in `weighs`; the denominators keep the rows, and
  scalar losses, as PretrainingLoss, are not weighed.
  Source: a definition.
  """

  weighs: tuple[str, ...] = static(default=('policy', 'regularizer', 'value'))
  per_token = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """Weights [B, T]."""
    traj = ctx.traj
    sampled_B1 = row_inputs.sampled_B(traj)[:, None]
    return LossOut(jnp.broadcast_to(sampled_B1, traj.mask_BT.shape), {})
