"""Values behind tokens, without gradient and without logits."""

from typing import Any

import jax.numpy as jnp

from rl_jax.learning.statistics import (
  Forward,
  in_microbatches,
  states_around,
)
from rl_jax.models import heads
from rl_jax.pieces.ops.masking import last_token
from rl_jax.types import Array, Trajectories


def token_values(forward: Forward, params: Any, traj: Trajectories) -> Array:
  """The value head behind every token, [B, T]."""

  def one(rows):
    _, after_BTD = states_around(forward, params, rows)
    return heads.values(params, after_BTD)

  return in_microbatches(forward, traj, one)


def final_values(forward: Forward, params: Any, traj: Trajectories) -> Array:
  """The value head behind the last token of the policy, [B]; 0 without one.

  With unscored_id of the model: behind the last other token; if there is none,
  behind the prompt.
  """
  unscored = forward.model.unscored_id

  def one(rows):
    before_BTD, after_BTD = states_around(forward, params, rows)
    value_BT = heads.values(params, after_BTD)
    if unscored is None:
      return last_token(value_BT, rows.mask_BT)
    scored_BT = rows.mask_BT * (rows.response_BT != unscored)
    return jnp.where(
      scored_BT.any(axis=1),
      last_token(value_BT, scored_BT),
      heads.values(params, before_BTD[:, 0]),
    )

  return in_microbatches(forward, traj, one)
