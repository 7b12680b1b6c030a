"""XRPO: more samples for prompts whose mean reward is uncertain."""

from typing import Any, ClassVar

import numpy as np
from scipy import special

from rl_jax.checks import ranged
from rl_jax.pieces.piece import piece
from rl_jax.rollouts.join import join_chunks
from rl_jax.types import Trajectories


@piece
class UncertaintyAllocation:
  """G samples of each of N prompts, then `rounds` of N chunks of G more.

    h(n) = t_{(1 + confidence) / 2, n - 1} s / sqrt(n)
    priority = h(n) - h(n + G) + coef sqrt(log(1 + samples so far) / n)

  s: standard deviation of the prompt's valid rewards (ddof 1), n their number.
  A round gives its chunks one by one to the prompt with the highest priority,
  n counting the chunks already given; a prompt gets `most` chunks at most, over
  all rounds. Groups have G (1 + most) rows; those that were not drawn are
  invalid and weigh nothing. With most = rounds every prompt gets as many.
  Source: "XRPO: Pushing the Limits of GRPO with Targeted Exploration and
  Exploitation", from reviews; there G = 1 behind the first round. coef,
  confidence, rounds and the inside of the logarithm are not known. Its seeding
  of failed prompts with solved examples is not built.
  """

  confidence: float = ranged(0.95, 0.0, 1.0, open_low=True, open_high=True)
  coef: float = ranged(0.1, 0.0)  # units of the reward
  rounds: int = ranged(1, 1, static=True)
  most: int = ranged(3, 1, static=True)  # chunks of a prompt
  role: ClassVar[str] = 'rollout'

  def check_rollout(self, task: Any, rollout: Any) -> None:
    """Raises ValueError if chunks cannot all be given, or have no spread."""
    del task
    if self.most < self.rounds:
      raise ValueError(
        f'method.rollout: UncertaintyAllocation.most = {self.most} chunks of a '
        f'prompt cannot take {self.rounds} rounds: it must be that many'
      )
    if rollout.group_size < 2:
      raise ValueError(
        'method.rollout: UncertaintyAllocation needs rollout.group_size >= 2, '
        f'got {rollout.group_size}'
      )

  def half_width(self, count_N: np.ndarray, std_N: np.ndarray) -> np.ndarray:
    """h of the formula; 0 without spread, as of one sample."""
    freedom_N = np.maximum(count_N - 1, 1)
    quantile_N = special.stdtrit(freedom_N, (1 + self.confidence) / 2)
    width_N = quantile_N * std_N / np.sqrt(np.maximum(count_N, 1))
    return np.where(std_N > 0, width_N, 0.0)

  def priority(
    self, count_N: np.ndarray, std_N: np.ndarray, total: int, chunk: int
  ) -> np.ndarray:
    """Of one more chunk for each prompt; total: samples so far."""
    gain_N = self.half_width(count_N, std_N)
    gain_N = gain_N - self.half_width(count_N + chunk, std_N)
    bonus_N = np.sqrt(np.log1p(total) / np.maximum(count_N, 1))
    return gain_N + self.coef * bonus_N

  def plan(
    self, reward_NS: np.ndarray, given_N: np.ndarray, chunk: int
  ) -> np.ndarray:
    """The prompts of the N chunks of a round, int [N], rising.

    reward_NS: what is known, NaN elsewhere. given_N: chunks of earlier rounds.
    Equal priorities go to the first prompt.
    """
    known_NS = np.isfinite(reward_NS)
    count_N, given_N = known_NS.sum(1), given_N.copy()
    mean_N = np.where(known_NS, reward_NS, 0.0).sum(1) / np.maximum(count_N, 1)
    away_NS = np.where(known_NS, reward_NS - mean_N[:, None], 0.0)
    std_N = np.sqrt((away_NS**2).sum(1) / np.maximum(count_N - 1, 1))
    total, chosen = int(count_N.sum()), []
    for _ in range(len(reward_NS)):
      priority_N = self.priority(count_N, std_N, total, chunk)
      n = int(np.argmax(np.where(given_N < self.most, priority_N, -np.inf)))
      chosen.append(n)
      count_N[n] += chunk
      given_N[n] += 1
      total += chunk
    return np.sort(np.asarray(chosen, np.int32))

  def extend(
    self, traj: Trajectories, done: Any, sampler: Any
  ) -> tuple[Trajectories, list[Any]]:
    """(groups with all their chunks, the rounds of further ones)."""
    N, G = traj.num_prompts, traj.group_size
    reward_NS = np.full((N, G * (1 + self.most)), np.nan)
    reward_NS[:, :G] = done.reward_NG
    place_NM = np.full((N, self.most), -1, np.int32)  # number of the chunk
    drawn, rounds = [], []
    for number in range(self.rounds):
      given_N = (place_NM >= 0).sum(1)
      chosen_N = self.plan(reward_NS, given_N, G)
      examples = [done.examples[n] for n in chosen_N]
      more, found = sampler.sample(examples, done.indices[chosen_N])
      for chunk, n in enumerate(chosen_N):
        m = (place_NM[n] >= 0).sum()
        place_NM[n, m] = number * N + chunk
        reward_NS[n, G * (m + 1) : G * (m + 2)] = found.reward_NG[chunk]
      drawn.append(more)
      rounds.append(found)
    return sampler.run(join_chunks, traj, tuple(drawn), place_NM), rounds
