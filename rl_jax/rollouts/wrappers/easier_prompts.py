"""Reg-GRPO: prompts that are harder than the others get a hint."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rl_jax.checks import ranged
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.rollouts.wrappers.hints import (
  Hints,
  check_hints,
  check_shares,
  chosen_groups,
)
from rl_jax.types import Array, Trajectories, static

_ROUNDING = 1e-6  # relative, of means of float32 rewards


class RewardWindow:
  """Sums and numbers of the rewards of the last `length` rollouts."""

  name = 'reward_window'  # in checkpoints

  def __init__(self, length: int):
    self._rewards_W2 = np.zeros((length, 2), np.float32)

  @property
  def state(self) -> dict[str, np.ndarray]:
    """Returns what a checkpoint holds: a copy, as it may be written later."""
    return {'rewards_W2': self._rewards_W2.copy()}

  @state.setter
  def state(self, value: dict[str, Any]) -> None:
    self._rewards_W2 = np.array(jax.device_get(value['rewards_W2']))

  def add(self, total: float, count: int) -> float:
    """Takes in a rollout; the mean of all rewards of the window, 0 of none."""
    self._rewards_W2 = np.roll(self._rewards_W2, 1, axis=0)
    self._rewards_W2[0] = total, count
    total, count = self._rewards_W2.sum(axis=0, dtype=np.float64)
    return float(total / max(count, 1.0))


@piece
class EasierPrompts(Hints):
  """A group is sampled again, with a hint in its prompt, where Delta > margin.

    Delta = mean reward of the last rollouts - mean reward of the prompt's group

  The last `window` rollouts count, this one among them, without the groups with
  hints; they are part of a checkpoint.
  The new group takes the place of the old one and is trained under the prompt
  with the hint. The task writes it (`hinted(example)`); metrics of rewards
  leave these rows out. `graded` hints are longer for a larger Delta: the share
  Delta / (mean reward of the last rollouts) of the solution, which is 1 where
  the prompt's group earned nothing; the task writes them (`hinted_by`).
  Source: "DeepVideo-R1: Video Reinforcement Fine-Tuning via Difficulty-aware
  Regressive GRPO", from the text. There the length of the window and how Delta
  sets that of hints are not known, and easy inputs (Delta < 0) get noise.
  """

  margin: float = ranged(0.0, 0.0)  # in units of the reward
  graded: bool = static(default=False)
  window: int = ranged(1, 1, static=True)  # rollouts
  reads_rewards = True

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if the task has no such hints, or too long ones."""
    if not self.graded:
      return super().check(context)
    if context.task is not None:
      check_hints('EasierPrompts', context.task)
      check_shares('EasierPrompts.graded', context.task)
    if context.prompts is not None:
      hinted_by = context.prompts.task.hinted_by
      context.prompts.check(functools.partial(hinted_by, share=1.0))

  def make_memory(self, prompts: Any, rollout: Any) -> RewardWindow:
    """The rewards of the last rollouts."""
    del prompts, rollout
    return RewardWindow(self.window)

  def _delta(
    self, reward_NG: np.ndarray, window: RewardWindow
  ) -> tuple[np.ndarray, float]:
    """(Delta of each prompt, -inf where nothing is known; the mean reward).

    The rewards, NaN where nothing is known, become a rollout of the window.
    """
    known_NG = np.isfinite(reward_NG)
    total_N = np.where(known_NG, reward_NG, 0.0).sum(axis=1)
    count_N = known_NG.sum(axis=1)
    mean = window.add(total_N.sum(), count_N.sum())
    delta_N = mean - total_N / np.maximum(count_N, 1)
    return np.where(count_N > 0, delta_N, -np.inf), mean

  def _hard(self, delta_N: np.ndarray, mean: float) -> np.ndarray:
    """Prompts with Delta > margin by more than rounding, bool [N]."""
    return delta_N > self.margin + _ROUNDING * abs(mean)

  def _shares(self, delta_N: np.ndarray, mean: float) -> np.ndarray:
    """The share of the solution in each graded hint, 0 to 1, [N]."""
    # A mean below 0 is of a task with penalties: every hint is whole.
    whole_N = (delta_N > 0).astype(float)
    return np.clip(delta_N / mean, 0.0, 1.0) if mean > 0 else whole_N

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(rows, some of them with a hint; the round of hints if there was one)."""
    delta_N, mean = self._delta(done.reward_NG, sampler.memory)
    hard_N, hinted, rounds = self._hard(delta_N, mean), traj, []
    if hard_N.any():
      changed = None
      if self.graded:
        shares = self._shares(delta_N, mean).tolist()
        pairs = zip(done.examples, shares, strict=True)
        changed = [sampler.task.hinted_by(*pair) for pair in pairs]
      hinted, more, hard_N = self.sample_hinted(done, sampler, hard_N, changed)
      rounds = [more]
    return sampler.run(in_their_place, traj, hinted, hard_N), rounds


def in_their_place(
  plain: Trajectories, hinted: Trajectories, hard_N: Array
) -> Trajectories:
  """The groups of `hinted` where hard_N, those of `plain` elsewhere."""
  N = plain.num_prompts
  group_N = jnp.arange(N) + N * hard_N.astype(jnp.int32)
  return chosen_groups((plain, hinted), group_N)
