"""Reg-GRPO: prompts that are harder than the others get a hint."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.checks import ranged
from rl_jax.pieces.piece import piece
from rl_jax.rollouts.wrappers.hints import Hints
from rl_jax.types import Array, Trajectories


@piece
class EasierPrompts(Hints):
  """A group is sampled again, with a hint in its prompt, where Delta > margin.

    Delta = mean reward of the rollout - mean reward of the prompt's group

  The new group takes the place of the old one and is trained under the prompt
  with the hint. The task writes it (`hinted(example)`); metrics of rewards
  leave these rows out.
  Source: "DeepVideo-R1: Video Reinforcement Fine-Tuning via Difficulty-aware
  Regressive GRPO", from the text. There Delta is against the last rollouts,
  hints are longer for a larger Delta, and easy inputs (Delta < 0) get noise.
  """

  margin: float = ranged(0.0, 0.0)  # in units of the reward
  role: ClassVar[str] = 'rollout'
  reads_rewards: ClassVar[bool] = True

  def hard(self, reward_NG: np.ndarray) -> np.ndarray:
    """Prompts below the mean of the rollout, bool [N]; NaN does not count."""
    known_NG = np.isfinite(reward_NG)
    total_N = np.where(known_NG, reward_NG, 0.0).sum(axis=1)
    count_N = known_NG.sum(axis=1)
    mean = total_N.sum() / max(count_N.sum(), 1)
    return (count_N > 0) & (
      mean - total_N / np.maximum(count_N, 1) > self.margin
    )

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(rows, some of them with a hint; the round of hints if there was one)."""
    hard_N, rounds = self.hard(done.reward_NG), []
    hinted = traj
    if hard_N.any():
      hinted, more, hard_N = self.sample_hinted(done, sampler, hard_N)
      rounds = [more]
    return sampler.run(in_their_place, traj, hinted, hard_N), rounds


def in_their_place(
  plain: Trajectories, hinted: Trajectories, hard_N: Array
) -> Trajectories:
  """The groups of `hinted` where hard_N, those of `plain` elsewhere."""
  N = plain.num_prompts

  def choose(a, b):
    one = jnp.repeat(hard_N, a.shape[0] // N)
    return jnp.where(one.reshape(-1, *[1] * (a.ndim - 1)), b, a)

  rows = jax.tree.map(choose, plain, hinted)
  foreign_B = jnp.repeat(hard_N, plain.group_size).astype(jnp.float32)
  return rows.replace(extras={**rows.extras, 'foreign_B': foreign_B})
