"""Pairs of a right and a wrong response, made by rule from another task."""

import dataclasses
from typing import Any

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import draws, wrapped
from rl_jax.tasks.base import Example, RecordedResponse


@dataclasses.dataclass(frozen=True)
@checked
class RulePairs(wrapped.Wrapped):
  """A task with recorded responses: its target, and the target with an error.

  The error replaces one character by another one of `symbols`. With form
  'label' a prompt has one response, the right or the wrong one by the hash of
  the prompt; with 'right' the target only. flip_rate of the prompts have the
  wrong label, by that hash, too. Prompts, rewards and everything else are those
  of the task.
  """

  task: Any
  form: str = chosen('pair', ('pair', 'label', 'right'))
  symbols: str = '0123456789'
  flip_rate: float = ranged(0.0, 0.0, 1.0)
  seed: int = 0

  def __post_init__(self):
    super().__post_init__()
    if len(set(self.symbols)) < 2:
      raise ValueError(
        f'RulePairs.symbols = {self.symbols!r}: give at least two'
      )

  @property
  def num_recorded(self) -> int:
    """Two responses of a pair, else one."""
    return 2 if self.form == 'pair' else 1

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """The right response first; or one of them."""
    stream = draws.Draws('rule_pairs', self.seed, example.prompt)
    flipped = stream.uniform() < self.flip_rate
    right_first = stream.below(2) == 0
    target = self.task.target(example)
    place = stream.below(len(target))
    others = [s for s in self.symbols if s != target[place]]
    wrong = target[:place] + stream.choice(others) + target[place + 1 :]
    pair = tuple(
      RecordedResponse(text=text, reward=float(label), label=int(label))
      for text, label in ((target, not flipped), (wrong, flipped))
    )
    if self.form == 'label':
      return pair[1 - right_first :][:1]
    return pair if self.form == 'pair' else (RecordedResponse(text=target),)
