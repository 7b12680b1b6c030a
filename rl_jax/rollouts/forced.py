"""Rows that begin with tokens that are given."""

import jax.numpy as jnp

from rl_jax.types import FORCED, PAD, Array, Trajectories


def begin_with(
  traj: Trajectories, token_BT: Array, length_B: Array
) -> Trajectories:
  """Empty rows with the first length_B of token_BT as FORCED tokens."""
  given_BT = jnp.arange(token_BT.shape[1])[None] < length_B[:, None]
  return traj.replace(
    response_BT=jnp.where(given_BT, token_BT, 0),
    kind_BT=jnp.where(given_BT, FORCED, PAD),
    length_B=length_B,
  )
