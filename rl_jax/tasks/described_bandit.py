"""The bandit with what method pieces read of a response besides its reward."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from rl_jax.tasks import base, descriptions
from rl_jax.tasks.bandit import Bandit
from rl_jax.tasks.base import Example


@dataclasses.dataclass(frozen=True)
class DescribedBandit(Bandit):
  """Adds components of weight 0, so that every extra of a row has a value.

  An answer is the action. All prompts are equally hard. The reference response
  of every context is the first action, and a hint is the best action.
  """

  def hinted(self, example: Example) -> Example:
    """With the best action behind the context: 'Cf'."""
    return dataclasses.replace(example, prompt=example.prompt + example.answer)

  def reward(self, example: Example, response: str) -> Mapping[str, float]:
    """The bandit's components and the description."""
    found = super().reward(example, response)
    found['reference_reward'] = self._references()[example.id]
    found['difficulty'] = 1.0
    if len(response) != 1 or response not in self.alphabet[self.num_contexts :]:
      return {**found, **descriptions.MALFORMED}
    action = self.alphabet.index(response) - self.num_contexts
    return {
      **found,
      **descriptions.single_answer(float(action), found[base.OUTCOME]),
    }

  def reward_device(
    self, response_BT, length_B, answer_BA, answer_length_B, tokenizer
  ) -> dict[str, Any]:
    """The jittable twin of `reward`."""
    import jax.numpy as jnp

    from rl_jax.tasks import device_verifiers

    found = super().reward_device(
      response_BT, length_B, answer_BA, answer_length_B, tokenizer
    )
    references = jnp.asarray(self._references())
    found['reference_reward'] = references[answer_BA[:, 0]]
    letters = self.alphabet[self.num_contexts :]
    actions = [tokenizer.encode(letter)[0] for letter in letters]
    kept_BT = device_verifiers.text_mask(response_BT, length_B, tokenizer)
    # A table whose value is the number of the action, from 1.
    number_B = device_verifiers.table_lookup(
      response_BT,
      kept_BT,
      answer_BA[:, 0] * 0,
      actions,
      [[float(i) for i in range(1, len(actions) + 1)]],
    )
    found['difficulty'] = jnp.ones_like(number_B)
    described = descriptions.single_answer(number_B - 1.0, found[base.OUTCOME])
    return found | {
      name: jnp.where(number_B > 0, value, descriptions.MALFORMED[name])
      for name, value in described.items()
    }

  def _references(self) -> list[float]:
    """Outcome of the first action in every context."""
    return [float(row[0] == 1.0) for row in self.table()]
