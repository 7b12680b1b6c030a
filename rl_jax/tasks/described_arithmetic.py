"""Arithmetic with what method pieces read of a response besides its reward."""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from rl_jax.checks import check_range
from rl_jax.tasks import base, descriptions
from rl_jax.tasks.arithmetic import Arithmetic
from rl_jax.tasks.base import Example


@dataclasses.dataclass(frozen=True)
class DescribedArithmetic(Arithmetic):
  """Adds components of weight 0, so that every extra of a row has a value.

  Answers are equivalent if they are the same number ('07' and '7'). The
  difficulty of a prompt is 1 + its carries or borrows. Its reference response
  adds digit by digit and forgets them, so it is right if there are none.
  """

  def __post_init__(self):
    super().__post_init__()
    check_range(self, 'digits', 1, 5)  # cluster_id exact in float32

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """The outcome and the description."""
    found = super().reward(example, response)
    carries = _carries(example.prompt)
    found['difficulty'] = 1.0 + carries
    found['reference_reward'] = float(carries == 0)
    text = response[::-1] if self.reverse else response
    number = text.removeprefix('-')
    decimal = number.isascii() and number.isdecimal()
    if not decimal or len(number) > self.digits + 1:
      return {**found, **descriptions.MALFORMED}
    value = int(number)
    cluster = float(2 * value + (text != number and value > 0))
    return {
      **found,
      **descriptions.single_answer(cluster, found[base.OUTCOME]),
    }

  def device_answers(self, examples: Sequence[Example], tokenizer: Any) -> Any:
    """Those of Arithmetic behind the number of carries."""
    from rl_jax.tasks import device_verifiers

    return device_verifiers.pad_rows(
      [
        [_carries(example.prompt), *tokenizer.encode(example.answer)]
        for example in examples
      ]
    )

  def reward_device(
    self, response_BT, length_B, answer_BA, answer_length_B, tokenizer
  ) -> dict[str, Any]:
    """The jittable twin of `reward`."""
    import jax.numpy as jnp

    from rl_jax.tasks import device_verifiers

    found = super().reward_device(
      response_BT, length_B, answer_BA[:, 1:], answer_length_B - 1, tokenizer
    )
    carries_B = answer_BA[:, 0]
    found['difficulty'] = 1.0 + carries_B
    found['reference_reward'] = (carries_B == 0).astype(jnp.float32)
    kept_BT = device_verifiers.text_mask(response_BT, length_B, tokenizer)
    value_B, negative_B, valid_B = device_verifiers.decimal(
      response_BT, kept_BT, tokenizer, self.digits + 1, self.reverse
    )
    cluster_B = 2 * value_B + (negative_B & (value_B > 0))
    described = descriptions.single_answer(
      cluster_B.astype(jnp.float32), found[base.OUTCOME]
    )
    return found | {
      name: jnp.where(valid_B, value, descriptions.MALFORMED[name])
      for name, value in described.items()
    }


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
