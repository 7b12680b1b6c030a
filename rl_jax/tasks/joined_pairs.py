"""Pairs of responses in one row, for models that see both."""

import dataclasses
from typing import Any

from rl_jax.tasks.base import Example, RecordedResponse
from rl_jax.tasks.wrapped import Wrapped, with_letters


@dataclasses.dataclass(frozen=True)
class JoinedTexts(Wrapped):
  """Base of a task of pairs whose rows are 'one separator the other'."""

  task: Any
  separator: str = '\n'

  def __post_init__(self):
    super().__post_init__()
    name = type(self).__name__
    if not self.separator:
      raise ValueError(f'{name}.separator is empty')
    if self.task.num_recorded != 2:
      raise ValueError(
        f'{name} needs two responses to a prompt, and the data of '
        f'{type(self.task).__name__} have {self.task.num_recorded}'
      )

  @property
  def alphabet(self) -> str | tuple[str, ...] | None:
    """The alphabet of the task with the letters of the separator."""
    return with_letters(self.task.alphabet, self.separator)

  def pair(self, example: Example) -> tuple[RecordedResponse, RecordedResponse]:
    """The chosen and the rejected response, which are texts."""
    chosen, rejected = self.task.recorded(example)
    if chosen.messages:
      raise ValueError(
        f'{type(self).__name__} joins texts, and the data are conversations'
      )
    return chosen, rejected


@dataclasses.dataclass(frozen=True)
class JoinedPairs(JoinedTexts):
  """A task of pairs: a, b become 'a separator b', chosen, and 'b separator a'.

  --method=reward_model learns V of them, and with it P(a beats b | x) =
  sigmoid(V(x, a, b) - V(x, b, a)), which no order changes. As a reward it is
  RewardModel(separator=...). Everything else is that of the task.
  """

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """The chosen one first, then second."""
    chosen, rejected = self.pair(example)
    return tuple(
      RecordedResponse(
        text=self.separator.join(texts),
        steps=(texts[0], self.separator, texts[1]),
        reward=one.reward,
        label=one.label,
      )
      for one, texts in (
        (chosen, (chosen.text, rejected.text)),
        (rejected, (rejected.text, chosen.text)),
      )
    )


@dataclasses.dataclass(frozen=True)
class ReferencedPairs(JoinedTexts):
  """A task of pairs (w, l) as four rows 'response separator reference'.

  In this order w beside l, w beside w, l beside l, l beside w, with rewards 2,
  1, 1, 0. --method=reward_model@rankings learns a gap g(x, y, y_ref) of them:
  of the pairs of unequal rewards, which are five, the loss is the mean, where
  PIT adds -log sigmoid of these differences up. As a reward it is
  Judge(reads='value', template='{prompt}{response}SEPARATOR{answer}') with the
  reference as the answer of the data, which the policy sees in its prompt.
  Everything else is that of the task.
  Source: PIT, "Enable Language Models to Implicitly Learn Self-Improvement From
  Data", 2023; reconstructed.
  """

  num_recorded = 4

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """The four rows."""
    chosen, rejected = self.pair(example)
    w, l = chosen.text, rejected.text  # noqa: E741
    pairs = ((w, l, 2.0), (w, w, 1.0), (l, l, 1.0), (l, w, 0.0))
    return tuple(
      RecordedResponse(
        text=self.separator.join((own, reference)), reward=reward
      )
      for own, reference, reward in pairs
    )
