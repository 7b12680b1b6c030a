"""A task with what method pieces read of a response besides its reward."""

import abc
from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from rl_jax.tasks import base, wrapped
from rl_jax.tasks.base import Example

_EXACT = 1 << 24  # integers below it are exact in float32
# Components of a response without an answer, and of one with an answer; those
# of it that are not constant are filled in. 'format' is not a row input.
_MALFORMED = {
  'cluster_id': -1.0,
  'first_call': -1.0,
  'forced': 0.0,
  'format': 0.0,
  'format_id': 0.0,
  'hit_rank': 0.0,
  'mode': 1.0,
  'num_answers': -1.0,
}
_ANSWERED = _MALFORMED | {
  'format': 1.0,
  'format_id': 1.0,
  'mode': 0.0,
  'num_answers': 1.0,
}


class NumberedAnswers(base.Task, is_base=True):
  """Base of a task whose answers are numbers below `num_answers`."""

  @property
  @abc.abstractmethod
  def num_answers(self) -> int:
    """Returns how many answers there are."""

  @abc.abstractmethod
  def answer_number(self, response: str) -> int | None:
    """The answer of a response; None if it has none."""

  @abc.abstractmethod
  def answer_number_device(
    self, response_BT: Any, length_B: Any, tokenizer: Any
  ) -> tuple[Any, Any]:
    """(i32[B], bool[B]): the answers, and which responses have one."""

  @abc.abstractmethod
  def describe(self, example: Example) -> tuple[int, int]:
    """(difficulty, reward of a reference response)."""


@dataclasses.dataclass(frozen=True)
class Described(wrapped.Wrapped):
  """Adds components of weight 0, so that `row_inputs` finds them in every row.

  A well-formed response is one plain answer: in the instant mode, the one
  format, the only candidate. The task derives from NumberedAnswers.

  Raises: ValueError for another task, or with answer numbers that are
    not exact in float32.
  """

  task: Any

  def __post_init__(self):
    name = type(self.task).__name__
    super().__post_init__()
    if not isinstance(self.task, NumberedAnswers):
      raise ValueError(f'Described.task: {name} does not number its answers')
    if self.task.num_answers > _EXACT:
      raise ValueError(
        f'Described.task: {name} has {self.task.num_answers} answers, and '
        f'cluster_id is exact in float32 up to {_EXACT}'
      )

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """The components of the task and the description."""
    found = dict(self.task.reward(example, response))
    difficulty, reference = self.task.describe(example)
    found |= _MALFORMED
    found |= {'difficulty': difficulty, 'reference_reward': reference}
    number = self.task.answer_number(response)
    if number is None:
      return found
    return found | _answered(number, found[base.OUTCOME])

  def device_answers(self, examples: Sequence[Example], tokenizer: Any) -> Any:
    """The answers of the task, preceded by its two numbers of `describe`."""
    import numpy as np

    answer_BA, length_B = self.task.device_answers(examples, tokenizer)
    described_B2 = np.array([self.task.describe(e) for e in examples], np.int32)
    return np.concatenate([described_B2, answer_BA], axis=1), length_B + 2

  def reward_device(
    self, response_BT, length_B, answer_BA, answer_length_B, tokenizer
  ) -> dict[str, Any]:
    """The jittable twin of `reward`."""
    import jax.numpy as jnp

    found = self.task.reward_device(
      response_BT, length_B, answer_BA[:, 2:], answer_length_B - 2, tokenizer
    )
    difficulty_B, reference_B = answer_BA[:, :2].T.astype(jnp.float32)
    found |= {'difficulty': difficulty_B, 'reference_reward': reference_B}
    number_B, has_answer_B = self.task.answer_number_device(
      response_BT, length_B, tokenizer
    )
    answered = _answered(number_B.astype(jnp.float32), found[base.OUTCOME])
    return found | {
      name: jnp.where(has_answer_B, value, _MALFORMED[name])
      for name, value in answered.items()
    }


def _answered(number, outcome):
  return _ANSWERED | {'cluster_id': number, 'hit_rank': outcome}
