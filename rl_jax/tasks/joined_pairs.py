"""Pairs of responses that stand in one row, for models that see both."""

import dataclasses
from typing import Any

from rl_jax.tasks import base
from rl_jax.tasks.base import Example, Logged


@dataclasses.dataclass(frozen=True)
class JoinedPairs:
  """A task of pairs: a, b become 'a separator b', chosen, and 'b separator a'.

  --method=reward_model learns V of them, and with it P(a beats b | x) =
  sigmoid(V(x, a, b) - V(x, b, a)), which no order changes. As a reward it is
  RewardModel(separator=...). Everything else is that of the task.
  """

  task: Any
  separator: str = '\n'

  def __post_init__(self):
    if not self.separator:
      raise ValueError('JoinedPairs.separator is empty')
    if base.num_logged(self.task) != 2:
      raise ValueError(
        f'JoinedPairs needs two responses to a prompt, and the data of '
        f'{type(self.task).__name__} have {base.num_logged(self.task)}'
      )

  def __getattr__(self, name: str) -> Any:
    # Prompts, targets, weights and optional members are those of the task.
    if name == 'task' or name.startswith('__'):  # while it is unpickled
      raise AttributeError(name)
    return getattr(self.task, name)

  def logged(self, example: Example) -> tuple[Logged, ...]:
    """The chosen one in front, then behind."""
    chosen, rejected = base.logged(self.task, example)
    if chosen.messages:
      raise ValueError(
        'JoinedPairs joins texts, and the data are conversations'
      )
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
