"""Prompts that name the reward for which their samples count."""

from collections.abc import Mapping
import dataclasses
from typing import Any, ClassVar

from rl_jax.tasks import base, wrapped
from rl_jax.tasks.base import Example

NO_IDENTIFIER = -1.0


@dataclasses.dataclass(frozen=True)
class RewardIdentifiers(wrapped.Wrapped):
  """A task with the mark of a reward component before each prompt.

    RewardIdentifiers(task, marks={'outcome': 'o', 'format': 'f'})

  Prompt i of the train split is prompt i // K of the task with mark i mod K;
  prompts of other splits have all K marks, in their order, so that a policy is
  asked for all rewards at once. Component `identifier`: the number of the mark
  in `marks`, or -1 with all of them; `credit.OwnComponent` reads it.
  Source: "Parrot: Pareto-optimal Multi-Reward Reinforcement Learning Framework
  for Text-to-Image Generation", reconstructed.
  Raises: ValueError for a mark that is empty, and for prompts that are
    conversations.
  """

  # They read prompts that have no marks.
  not_passed: ClassVar[tuple[str, ...]] = (
    *('hinted', 'hinted_by', 'with_examples', 'reward_device'),
    *('with_rubric', 'criticised'),
    *('device_answers', 'make'),
  )

  task: Any
  marks: Mapping[str, str] = dataclasses.field(hash=False)

  def __post_init__(self):
    super().__post_init__()
    if not self.marks or not all(self.marks.values()):
      raise ValueError(
        f'RewardIdentifiers.marks = {dict(self.marks)}: expected a text for '
        'each component, one at least'
      )

  @property
  def alphabet(self) -> str | tuple[str, ...] | None:
    """The alphabet of the task with the letters of the marks."""
    return wrapped.with_letters(
      self.task.alphabet, ''.join(self.marks.values())
    )

  def num_prompts(self, split: str) -> int:
    """K for each one of the train split."""
    count = self.task.num_prompts(split)
    return count * len(self.marks) if split == 'train' else count

  def sizes(self, split: str) -> list[int]:
    """One part."""
    return [self.num_prompts(split)]

  def example(self, split: str, index: int) -> Example:
    """The prompt of the task, after its mark or all marks."""
    base.check_index(self, split, index)
    marks, number = tuple(self.marks.values()), NO_IDENTIFIER
    text, place = ''.join(marks), index
    if split == 'train':
      place, own = divmod(index, len(marks))
      text, number = marks[own], float(own)
    example = self.task.example(split, place)
    if example.messages or example.parts:
      raise ValueError(
        f'RewardIdentifiers.task: {type(self.task).__name__} has conversations '
        'or templates: only plain prompts can begin with a mark'
      )
    return dataclasses.replace(
      example,
      prompt=text + example.prompt,
      id=index,
      meta={**example.meta, 'identifier': number, 'unmarked': example},
    )

  def target(self, example: Example) -> str:
    """The target of the prompt without a mark."""
    return self.task.target(example.meta['unmarked'])

  def recorded(self, example: Example) -> tuple[base.RecordedResponse, ...]:
    """The responses to the prompt without a mark."""
    return self.task.recorded(example.meta['unmarked'])

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """The components of the task, and `identifier`."""
    found = dict(self.task.reward(example.meta['unmarked'], response))
    return {**found, 'identifier': example.meta['identifier']}
