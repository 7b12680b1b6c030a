"""A task whose responses begin in a mode that is given."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from rl_jax.tasks.base import Example


@dataclasses.dataclass(frozen=True)
class InMode:
  """The task with the beginning of one of its `modes` behind every prompt.

  The policy continues it, and the verifier judges both: accuracy in a mode that
  the user asks for (ARM calls it instruction-guided). For EvaluationSet.

  Raises: ValueError if the task has no such mode.
  """

  task: Any
  mode: str

  def __post_init__(self):
    modes = getattr(self.task, 'modes', {})
    if self.mode not in modes:
      raise ValueError(
        f'InMode.mode = {self.mode!r}: {type(self.task).__name__} has '
        f'{", ".join(modes) or "no modes"}'
      )

  @property
  def reward_weights(self) -> dict[str, float]:
    """Of the task."""
    return self.task.reward_weights

  def num_prompts(self, split: str) -> int:
    """Of the task."""
    return self.task.num_prompts(split)

  def example(self, split: str, index: int) -> Example:
    """The task's, with the mode's beginning as prefill."""
    example = self.task.example(split, index)
    prefill = example.prefill + self.task.modes[self.mode]
    return dataclasses.replace(example, prefill=prefill)

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """Of prefill and response."""
    return self.task.reward(example, response)
