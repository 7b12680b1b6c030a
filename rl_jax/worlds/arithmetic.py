"""Addition and subtraction of n-digit numbers, as short character strings."""

from collections.abc import Sequence
import dataclasses
import functools
import math
from typing import Any

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example
from rl_jax.tasks.described import NumberedAnswers


@dataclasses.dataclass(frozen=True)
@checked
class Arithmetic(NumberedAnswers):
  """'123+456=' -> '579', '123-456=' -> '-333'.

  Operands have exactly `digits` digits (1..9, 10..99, 100..999, ...). A keyed
  permutation orders all unordered pairs {a, b}; its positions modulo 10 split
  them 80/10/10, so that neither (a, b) nor (b, a) is in two splits. Each pair
  gives one prompt, with operator and order from its hash. The split depends on
  the pair only, so all runs and stages share it.

  With `signed` False the larger operand of a subtraction comes first, and no
  answer is negative. With `reverse` answers are written from the last character
  to the first ('975'), the order in which carries are found: much easier to
  learn for a small decoder. The outcome is exact equality of the text.
  """

  digits: int = ranged(3, 1, 9)
  operations: str = chosen('+-', ('+', '-', '+-'))
  signed: bool = True
  reverse: bool = False
  num_validation: int = ranged(1000, 1)  # prompts, if the split has as many
  num_test: int = ranged(2000, 1)
  reward_weights: dict[str, float] = base.outcome_only()

  alphabet = '0123456789+-='  # for a character tokenizer

  def num_prompts(self, split: str) -> int:
    """All pairs of the split for train, at most num_... for the others."""
    base.check_split(split)
    owned = draws.num_owned(split, _num_pairs(self.digits))
    limits = {'validation': self.num_validation, 'test': self.num_test}
    return min(owned, limits.get(split, owned))

  def example(self, split: str, index: int) -> Example:
    """The index-th pair of the split in the permuted order."""
    base.check_index(self, split, index)
    position = draws.owned(split, index)
    a, b = _pair(_permutation(self.digits).backward(position), self.digits)
    coin = draws.stable_hash('variant', a, b)
    operation = self.operations[coin % len(self.operations)]
    ordered = operation == '-' and not self.signed
    if ordered or coin >> 8 & 1:
      a, b = b, a  # _pair gives a <= b
    value = a + b if operation == '+' else a - b
    answer = str(value)[::-1] if self.reverse else str(value)
    return Example(prompt=f'{a}{operation}{b}=', answer=answer, id=index)

  def split_of(self, a: int, b: int) -> str:
    """The split of the pair {a, b}."""
    low, high = 10 ** (self.digits - 1), 10**self.digits - 1
    if not (low <= a <= high and low <= b <= high):
      raise ValueError(f'operands {a}, {b} are outside {low}..{high}')
    small, large = sorted((a - low, b - low))
    number = large * (large + 1) // 2 + small
    position = _permutation(self.digits).forward(number)
    return next(s for s, owned in draws.OWNED.items() if position % 10 in owned)

  def target(self, example: Example) -> str:
    """The answer itself."""
    return example.answer

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """1 if the text before the end token is the answer, exactly."""
    return {base.OUTCOME: float(response == example.answer)}

  def as_read(self, text: str) -> str:
    """An answer or a response with its first digit first."""
    return text[::-1] if self.reverse else text

  def device_answers(self, examples: Sequence[Example], tokenizer: Any) -> Any:
    """(answer tokens i32[B, A], their number i32[B])."""
    from rl_jax.tasks import device_verifiers

    return device_verifiers.answer_tokens(examples, tokenizer)

  def reward_device(
    self, response_BT, length_B, answer_BA, answer_length_B, tokenizer
  ) -> dict[str, Any]:
    """The jittable twin of `reward`."""
    from rl_jax.tasks import device_verifiers

    kept_BT = device_verifiers.text_mask(response_BT, length_B, tokenizer)
    return {
      base.OUTCOME: device_verifiers.exact_match(
        response_BT, kept_BT, answer_BA, answer_length_B
      )
    }

  @property
  def num_answers(self) -> int:
    """Numbers of digits + 1 digits with a sign (see `Described`)."""
    return 2 * 10 ** (self.digits + 1)

  def describe(self, example: Example) -> tuple[int, int]:
    """(1 + carries, reward of a sum digit by digit that forgets carries)."""
    carries = _carries(example.prompt)
    return 1 + carries, int(carries == 0)

  def answer_number(self, response: str) -> int | None:
    """Twice the absolute value, 1 more if negative: '07' and '7' are equal."""
    text = self.as_read(response)
    number = text.removeprefix('-')
    decimal = number.isascii() and number.isdecimal()
    if not decimal or len(number) > self.digits + 1:
      return None
    value = int(number)
    return 2 * value + (text != number and value > 0)

  def answer_number_device(self, response_BT, length_B, tokenizer) -> Any:
    """The jittable twin of `answer_number`: (i32[B], bool[B])."""
    from rl_jax.tasks import device_verifiers

    kept_BT = device_verifiers.text_mask(response_BT, length_B, tokenizer)
    value_B, negative_B, valid_B = device_verifiers.decimal(
      response_BT, kept_BT, tokenizer, self.digits + 1, self.reverse
    )
    return 2 * value_B + (negative_B & (value_B > 0)), valid_B


def _carries(prompt: str) -> int:
  """Carries of '123+456=', borrows of '456-123=' in either order."""
  operation = '+' if '+' in prompt else '-'
  small, large = sorted(map(int, prompt[:-1].split(operation)))
  count = carry = 0
  while large:
    (large, a), (small, b) = divmod(large, 10), divmod(small, 10)
    carry = a + b + carry > 9 if operation == '+' else a < b + carry
    count += carry
  return count


def _num_pairs(digits: int) -> int:
  count = 9 * 10 ** (digits - 1)
  return count * (count + 1) // 2


def _pair(number: int, digits: int) -> tuple[int, int]:
  """Unordered pairs in triangular order: number = large(large+1)/2 + small."""
  large = (math.isqrt(8 * number + 1) - 1) // 2
  small = number - large * (large + 1) // 2
  low = 10 ** (digits - 1)
  return small + low, large + low


@functools.lru_cache
def _permutation(digits: int) -> draws.Permutation:
  return draws.Permutation(_num_pairs(digits), f'arithmetic-{digits}')
