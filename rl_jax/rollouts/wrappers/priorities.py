"""Priorities of prompts for further samples, by their rewards."""

from collections.abc import Collection

import numpy as np
from scipy import special

from rl_jax.pieces.roles import RolloutWrapper


class Priorities(RolloutWrapper):
  """The plan of rollout pieces that give samples where rewards are uncertain.

  Fields of the piece: confidence, coef and most, see uncertainty_allocation.py.
  """

  @property
  def confidence(self) -> float:
    """The confidence of the interval whose half-width is h."""
    raise NotImplementedError

  @property
  def coef(self) -> float:
    """The coefficient of the bonus for few samples, in units of the reward."""
    raise NotImplementedError

  @property
  def most(self) -> int:
    """Chunks that a prompt may get."""
    raise NotImplementedError

  def half_width(self, count_N: np.ndarray, std_N: np.ndarray) -> np.ndarray:
    """h of the formula; 0 without spread, as of one sample."""
    freedom_N = np.maximum(count_N - 1, 1)
    quantile_N = special.stdtrit(freedom_N, (1 + self.confidence) / 2)
    width_N = quantile_N * std_N / np.sqrt(np.maximum(count_N, 1))
    return np.where(std_N > 0, width_N, 0.0)

  def priority(
    self, count_N: np.ndarray, std_N: np.ndarray, total: int, chunk: int
  ) -> np.ndarray:
    """Priority of one more chunk of each prompt, [N]; total: samples so far."""
    gain_N = self.half_width(count_N, std_N)
    gain_N = gain_N - self.half_width(count_N + chunk, std_N)
    bonus_N = np.sqrt(np.log1p(total) / np.maximum(count_N, 1))
    return gain_N + self.coef * bonus_N

  def plan(
    self,
    reward_NS: np.ndarray,
    given_N: np.ndarray,
    chunk: int,
    seeded: Collection[int] = (),
  ) -> np.ndarray:
    """The prompts of the N chunks of a round, int [N], rising.

    reward_NS: what is known, NaN elsewhere. given_N: chunks of earlier rounds.
    seeded: prompts that have a chunk before all others. Equal priorities go to
    the first prompt.
    """
    known_NS = np.isfinite(reward_NS)
    count_N, given_N = known_NS.sum(1), given_N.copy()
    mean_N = np.where(known_NS, reward_NS, 0.0).sum(1) / np.maximum(count_N, 1)
    away_NS = np.where(known_NS, reward_NS - mean_N[:, None], 0.0)
    std_N = np.sqrt((away_NS**2).sum(1) / np.maximum(count_N - 1, 1))
    total, chosen, waiting = int(count_N.sum()), [], sorted(seeded)
    for number in range(len(reward_NS)):
      priority_N = self.priority(count_N, std_N, total, chunk)
      n = int(np.argmax(np.where(given_N < self.most, priority_N, -np.inf)))
      n = waiting[number] if number < len(waiting) else n
      chosen.append(n)
      count_N[n] += chunk
      given_N[n] += 1
      total += chunk
    return np.sort(np.asarray(chosen, np.int32))
