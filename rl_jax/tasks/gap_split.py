"""Prompts whose recorded responses differ much in reward, or little."""

import dataclasses
import functools
import statistics
from typing import Any

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import base, wrapped
from rl_jax.tasks.base import Example, RecordedResponse

_PLACE = 'gap_split_index'  # in Example.meta: the index in the whole task


@dataclasses.dataclass(frozen=True)
@checked
class GapSplit(wrapped.Wrapped):
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

  not_passed = ('hinted',)

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

  def num_prompts(self, split: str) -> int:
    """The number of prompts on the side."""
    return len(self._kept(split))

  def example(self, split: str, index: int) -> Example:
    """The index-th one of the side."""
    base.check_index(self, split, index)
    place = self._kept(split)[index]
    found = self.task.example(split, place)
    return dataclasses.replace(
      found, id=index, meta={**found.meta, _PLACE: place}
    )

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """The responses of the data."""
    return self.task.recorded(_inner(example))

  def target(self, example: Example) -> str:
    return self.task.target(_inner(example))

  def reward(self, example: Example, response: str) -> dict[str, float]:
    return self.task.reward(_inner(example), response)

  @functools.cached_property
  def _threshold(self):
    if self.threshold is not None:
      return self.threshold
    return statistics.median(self._gaps('train'))

  @functools.cached_property
  def _known(self) -> dict[str, list[int]]:
    return {}

  def _gaps(self, split):
    """The gap of every prompt of the whole task."""
    examples = (
      self.task.example(split, i) for i in range(self.task.num_prompts(split))
    )
    recorded = (self.task.recorded(example) for example in examples)
    rewards = ([one.reward for one in responses] for responses in recorded)
    return [max(x) - min(x) for x in rewards]

  def _kept(self, split):
    """Places of the side in the whole task."""
    if split not in self._known:
      easy, gaps = self.side == 'easy', enumerate(self._gaps(split))
      self._known[split] = [
        i for i, gap in gaps if (gap >= self._threshold) == easy
      ]
    return self._known[split]


def _inner(example: Example) -> Example:
  """The example as the whole task knows it."""
  meta = dict(example.meta)
  return dataclasses.replace(example, id=meta.pop(_PLACE), meta=meta)
