"""ReMax: the reward of the greedy response to every prompt."""

from typing import Any

import jax.numpy as jnp

from rl_jax.pieces.logits.transforms import TopK
from rl_jax.pieces.ops.masking import by_group, masked_mean
from rl_jax.pieces.piece import piece
from rl_jax.pieces.roles import RolloutWrapper
from rl_jax.types import Array, Trajectories


@piece
class GreedyResponse(RolloutWrapper):
  """Fills extras 'greedy_reward_B' with the reward of the greedy response.

  A second round of the same prompts, whose tokens are the likeliest ones (drawn
  among equal ones) at every step, after the method's transforms. It is judged
  as samples are, with reward models, and its rows join no group: nothing else
  sees them. A prompt has G such rows, where one would do, of which the mean
  counts; rollout.group_size=1 costs no more than one. Where none could be
  verified, the rows of the prompt are invalid and weigh nothing (ours).
  Source: "ReMax: A Simple, Effective, and Efficient Reinforcement Learning
  Method for Aligning Large Language Models"; verl ray_trainer.py
  (reward_baselines).
  """

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(the rows with the rewards, the round of greedy responses)."""
    greedy, more = sampler.sample(done.examples, done.indices, (TopK(k=1),))
    arrays = traj, greedy.reward_B, greedy.valid_B
    return sampler.run(with_greedy_reward, *arrays), [more]


def with_greedy_reward(
  traj: Trajectories, greedy_B: Array, known_B: Array
) -> Trajectories:
  """Rows with the means [N] of groups of greedy rewards, known where 1."""
  G = greedy_B.shape[0] // traj.num_prompts
  known_NG = by_group(known_B * jnp.isfinite(greedy_B), G)
  mean_N = masked_mean(by_group(greedy_B, G), known_NG, axis=1)

  def per_row(x_N):
    return jnp.repeat(x_N, traj.group_size)

  live_B = per_row((known_NG > 0).any(axis=1).astype(jnp.float32))
  return traj.replace(
    valid_B=traj.valid_B * live_B,
    weight_B=traj.weight_B * live_B,
    extras={**traj.extras, 'greedy_reward_B': per_row(mean_N)},
  )
