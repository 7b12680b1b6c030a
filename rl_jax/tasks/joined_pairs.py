"""Pairs of responses that stand in one row, for models that see both."""

import dataclasses
from typing import Any

from rl_jax.tasks.base import Example, Logged
from rl_jax.tasks.wrapped import Wrapped


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
    if self.task.num_logged != 2:
      raise ValueError(
        f'{name} needs two responses to a prompt, and the data of '
        f'{type(self.task).__name__} have {self.task.num_logged}'
      )

  def pair(self, example: Example) -> tuple[Logged, Logged]:
    """The chosen and the rejected response, which are texts."""
    chosen, rejected = self.task.logged(example)
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

  def logged(self, example: Example) -> tuple[Logged, ...]:
    """The chosen one in front, then behind."""
    chosen, rejected = self.pair(example)
    return tuple(
      Logged(
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
