"""GHPO: prompts without a right sample get longer and longer hints."""

import functools
from typing import Any

import numpy as np

from rl_jax.checks import ranged
from rl_jax.pieces.piece import CheckContext, piece
from rl_jax.rollouts.rounds import unsolved
from rl_jax.rollouts.wrappers.hints import Hints, check_shares, chosen_groups
from rl_jax.types import Trajectories, static


@piece
class StagedHints(Hints):
  """A group that fails is sampled again with a hint, a longer one each time.

  Stage k gives the share shares[k] of the solution to the prompts whose last
  group failed: no reward of it is above solved_above. The new group takes the
  place of the old one and is trained under the prompt with its hint, from which
  it was sampled, so that ratios are 1 before the first step; hints are in no
  loss. What the last stage gives is kept, right or wrong. A prompt whose hint
  is too long keeps the group that it has. The task writes the hint
  (`hinted_by(example, share)`); metrics of rewards leave these rows out. A
  stage samples groups of all prompts, whose shapes are compiled once, and is
  left out if no group fails: up to 1 + len(shares) rounds.
  Source: "GHPO: Adaptive Guidance for Stable and Efficient LLM Reinforcement
  Learning"; hkgc-1/GHPO src/ghpo/ghpo_trainer.py.
  """

  shares: tuple[float, ...] = static(default=(0.25, 0.5, 0.75))
  solved_above: float = ranged(0.5)  # in units of the reward
  reads_rewards = True

  def __post_init__(self):
    known = all(isinstance(x, (int, float)) and 0 < x <= 1 for x in self.shares)
    if (
      not known
      or not self.shares
      or list(self.shares) != sorted(set(self.shares))
    ):
      raise ValueError(
        f'StagedHints.shares = {self.shares!r}: expected numbers above 0, 1 at '
        'most, that rise, as (0.25, 0.5, 0.75)'
      )

  def check(self, context: CheckContext) -> None:
    """Raises ValueError if the task has no such hints, or too long ones."""
    if context.task is not None:
      check_shares('StagedHints', context.task)
    if context.prompts is not None:
      hinted_by = context.prompts.task.hinted_by
      context.prompts.check(functools.partial(hinted_by, share=self.shares[-1]))

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(rows, those that failed with a hint; the rounds with hints)."""
    failed_N = unsolved(done.reward_NG, self.solved_above)
    group_N = np.arange(traj.num_prompts, dtype=np.int32)
    trajs, rounds = [traj], []
    for share in self.shares:
      if not failed_N.any():
        break
      changed = [sampler.task.hinted_by(e, share) for e in done.examples]
      hinted, more, used_N = self.sample_hinted(
        done, sampler, failed_N, changed
      )
      trajs.append(hinted)
      rounds.append(more)
      group_N[used_N] = np.flatnonzero(used_N) + len(rounds) * len(group_N)
      failed_N = used_N & unsolved(more.reward_NG, self.solved_above)
    return sampler.run(chosen_groups, tuple(trajs), group_N), rounds
