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


def cut_lengths(
  beta: float | Array, length_B: Array, whether_B: Array, where_B: Array
) -> Array:
  """0 with probability 1 - beta, else uniform on {1, ..., length - 1}.

  0 where the length is 1 or 0. The draws lie in [0, 1).
  """
  places_B = length_B - 1
  place_B = (where_B * places_B).astype(jnp.int32)
  place_B = jnp.minimum(place_B, places_B - 1)  # the product may round up
  cut_B = (whether_B < beta) & (places_B > 0)
  return jnp.where(cut_B, 1 + place_B, 0)
