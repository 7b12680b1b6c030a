"""Responses beside a reference, for models of how much better they are."""

import dataclasses
from typing import Any

from rl_jax.tasks import base
from rl_jax.tasks.base import Example, Logged


@dataclasses.dataclass(frozen=True)
class ReferencedPairs:
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

  task: Any
  separator: str = '\n'

  num_logged = 4

  def __post_init__(self):
    if base.num_logged(self.task) != 2:
      raise ValueError(
        f'ReferencedPairs needs two responses to a prompt, and the data of '
        f'{type(self.task).__name__} have {base.num_logged(self.task)}'
      )

  def __getattr__(self, name: str) -> Any:
    # Prompts, targets, weights and optional members are those of the task.
    if name == 'task' or name.startswith('__'):  # while it is unpickled
      raise AttributeError(name)
    return getattr(self.task, name)

  def logged(self, example: Example) -> tuple[Logged, ...]:
    """The four rows."""
    chosen, rejected = base.logged(self.task, example)
    if chosen.messages:
      raise ValueError(
        'ReferencedPairs joins texts, and the data are conversations'
      )
    w, l = chosen.text, rejected.text  # noqa: E741
    pairs = ((w, l, 2.0), (w, w, 1.0), (l, l, 1.0), (l, w, 0.0))
    return tuple(
      Logged(text=self.separator.join((own, reference)), reward=reward)
      for own, reference, reward in pairs
    )
