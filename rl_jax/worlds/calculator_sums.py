"""Sums for which the response may call a calculator, early or late."""

import dataclasses
import re
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example

_CALL = re.compile(r'\[([0-9]{1,9})([+-])([0-9]{1,9})\]')


@dataclasses.dataclass(frozen=True)
@checked
class Calculator(DrawnTask):
  """Prompt '47+38=', response '7+8=15;[47+38]', or by hand: '85'.

  A response is pieces of text that `;` separates. '[47+38]' is a call; the last
  piece is the answer, a call stands for what it evaluates to. Components:
    outcome: 1 if the answer is the value of the sum.
    first_call: position of the first call, -1 without one: its character,
      which is its token with a tokenizer of characters.
    cost: calls that were made.
  The hash of a sum decides its split.

  `target` is that of a teacher that computes a share `by_hand` of the sums
  itself, rightly in half of them, and writes up to `workings` pieces before its
  call in the others.
  """

  digits: int = ranged(2, 1, 8)  # of both numbers
  by_hand: float = ranged(0.4, 0.0, 1.0)
  workings: int = ranged(3, 0)
  num_train: int = ranged(4000, 1, 2**31 - 1)
  num_validation: int = ranged(500, 1, 2**31 - 1)
  num_test: int = ranged(1000, 1, 2**31 - 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  alphabet = '0123456789+-=;[]'

  def example(self, split: str, index: int) -> Example:
    """Redraws until the sum belongs to the split."""
    base.check_index(self, split, index)
    (one, two), _ = draws.first_of_split(
      split, 'calculator', (self.seed, split, index), self._terms
    )
    return Example(prompt=f'{one}+{two}=', answer=str(one + two), id=index)

  def _terms(self, stream):
    low, count = 10 ** (self.digits - 1), 9 * 10 ** (self.digits - 1)
    terms = low + stream.below(count), low + stream.below(count)
    return terms, terms

  def target(self, example: Example) -> str:
    """Returns what the teacher writes: the same for the same sum."""
    stream = draws.Draws('calculator teacher', self.seed, example.prompt)
    if stream.uniform() < self.by_hand:
      wrong = stream.uniform() < 0.5
      return str(int(example.answer) + wrong * (1 + stream.below(9)))
    one, two = example.prompt.rstrip('=').split('+')
    pieces = [
      f'{a}+{b}={int(a) + int(b)}'
      for a, b in zip(one[::-1], two[::-1], strict=True)
    ]
    written = (pieces * self.workings)[: stream.below(self.workings + 1)]
    return ';'.join([*written, f'[{one}+{two}]'])

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The text before the end token is judged."""
    last = response.rpartition(';')[2]
    call = _CALL.fullmatch(last)
    found = str(_evaluated(call)) if call else last
    first = _CALL.search(response)
    return {
      base.OUTCOME: float(found == example.answer),
      'first_call': float(first.start() if first else -1),
      'cost': float(len(_CALL.findall(response))),
    }


def _evaluated(call: Any) -> int:
  left, operation, right = call.groups()
  return int(left) + (1 if operation == '+' else -1) * int(right)
