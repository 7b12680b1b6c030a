"""Losses of reinforcement learning count on sampled rows alone."""

from typing import ClassVar

import jax.numpy as jnp

from rl_jax.pieces import row_inputs
from rl_jax.pieces.piece import piece
from rl_jax.types import Array, Metrics, Trajectories, static


@piece
class SampledRows:
  """w_t = 1 on rows that the policy has written, 0 on rows from data.

  On losses [B, T] of the roles in `weighs`; the denominators keep the rows, and
  scalar losses, as PretrainingLoss, are not weighed.
  Source: a definition.
  """

  weighs: tuple[str, ...] = static(default=('policy', 'regularizer', 'value'))
  role: ClassVar[str] = 'weight'
  per_token: ClassVar[bool] = True

  def __call__(
    self, stats: dict[str, Array], traj: Trajectories, key: Array
  ) -> tuple[Array, Metrics]:
    """Weights [B, T]."""
    del stats, key
    sampled_B1 = row_inputs.sampled_B(traj)[:, None]
    return jnp.broadcast_to(sampled_B1, traj.mask_BT.shape), {}
