"""Lessons of a small frozen partner, as prompts and targets."""

import abc
import dataclasses
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, Task


class Lessons(abc.ABC):
  """The base of tasks whose partner can learn its part from examples."""

  @property
  @abc.abstractmethod
  def partner_alphabet(self) -> str | tuple[str, ...]:
    """The alphabet of the partner's character tokenizer."""

  @abc.abstractmethod
  def lesson(self, stream: draws.Draws) -> tuple[str, str]:
    """(a question, the answer that the partner should give)."""


@dataclasses.dataclass(frozen=True)
@checked
class PartnerLessons(Task):
  """Questions of `task`, with the answers that its partner should give.

  task: one that derives from Lessons. Splits draw their own lessons, so that
  one may occur in several. The outcome is exact equality.
  """

  task: Any
  num_train: int = ranged(20_000, 1)
  num_held_out: int = ranged(256, 1)  # of validation and test each
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  def __post_init__(self):
    if not isinstance(self.task, Lessons):
      raise ValueError(
        f'PartnerLessons.task = {type(self.task).__name__} has no lessons'
      )

  @property
  def alphabet(self) -> str | tuple[str, ...]:
    """The partner's alphabet."""
    return self.task.partner_alphabet

  def num_prompts(self, split: str) -> int:
    """Lessons of a split."""
    base.check_split(split)
    return self.num_train if split == 'train' else self.num_held_out

  def example(self, split: str, index: int) -> Example:
    """The lesson of that index."""
    base.check_index(self, split, index)
    stream = draws.Draws('lesson', self.seed, split, index)
    question, answer = self.task.lesson(stream)
    return Example(prompt=question, answer=answer, id=index)

  def target(self, example: Example) -> str:
    """The answer."""
    return example.answer

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """1 if the text is the answer, exactly."""
    return {base.OUTCOME: float(response == example.answer)}
