"""Scores of responses by value heads, without gradient and without logits."""

from typing import Any

from rl_jax.learning.statistics import (
  Forward,
  in_microbatches,
  states_around,
)
from rl_jax.models import heads
from rl_jax.models.reward_source import RewardModel
from rl_jax.pieces.ops.masking import last_token
from rl_jax.types import Array, Trajectories


def learned_rewards(
  models: tuple[tuple[RewardModel, Forward], ...],
  params: dict[str, Any],
  traj: Trajectories,
) -> dict[str, Array]:
  """{name: (V - center) / scale, [B]}; params: of each model, by name."""
  scores = {
    source.name: final_values(forward, params[source.name], traj)
    for source, forward in models
  }
  return {
    source.name: (scores[source.name] - source.center) / source.scale
    for source, _ in models
  }


def final_values(forward: Forward, params: Any, traj: Trajectories) -> Array:
  """The value head behind the last token of the policy, [B]; 0 without one."""

  def one(rows):
    _, after_BTD = states_around(forward, params, rows)
    return last_token(heads.values(params, after_BTD), rows.mask_BT)

  return in_microbatches(forward, traj, one)
