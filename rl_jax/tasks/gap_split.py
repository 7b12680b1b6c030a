"""Prompts whose recorded responses differ much in reward, or little."""

import dataclasses
import functools
import statistics
from typing import Any

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import wrapped


@dataclasses.dataclass(frozen=True)
@checked
class GapSplit(wrapped.Selected):
  """The easy or the hard prompts of a task with scored responses.

    easy: largest - smallest reward of the data >= threshold; hard: below it

  threshold: None is the median gap of the train split. Rewards are those of the
  data, scores of a reward model say: `experiments.evaluate_reward --scores_out`
  writes them. MPO trains on easy pairs by DPO, then on hard prompts by PPO from
  the DPO policy, which is the reference, too.
  Source: "Mixed Preference Optimization: Reinforcement Learning with Data
  Selection and Better Reference Model" (arXiv:2403.19443), reconstructed; the
  median is of this code.
  """

  task: Any
  side: str = chosen('easy', ('easy', 'hard'))
  threshold: float | None = ranged(None, 0.0)

  def __post_init__(self):
    super().__post_init__()
    if self.task.num_recorded < 2:
      raise ValueError(
        f'GapSplit compares responses, and the data of '
        f'{type(self.task).__name__} have one to a prompt'
      )

  @functools.cached_property
  def _threshold(self):
    if self.threshold is not None:
      return self.threshold
    return statistics.median(self._gaps('train'))

  def _gaps(self, split):
    """The gap of every prompt of the whole task."""
    examples = (
      self.task.example(split, i) for i in range(self.task.num_prompts(split))
    )
    recorded = (self.task.recorded(example) for example in examples)
    rewards = ([one.reward for one in responses] for responses in recorded)
    return [max(x) - min(x) for x in rewards]

  def places(self, split: str) -> list[int]:
    """Places of the side in the whole task."""
    easy, gaps = self.side == 'easy', enumerate(self._gaps(split))
    return [i for i, gap in gaps if (gap >= self._threshold) == easy]
