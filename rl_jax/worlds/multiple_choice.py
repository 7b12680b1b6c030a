"""Questions with several right options: which of these are multiples of 3?"""

from collections.abc import Sequence
import dataclasses
import string
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example

_DIVISORS = (2, 3, 4, 5)


@dataclasses.dataclass(frozen=True)
@checked
class MultipleChoice(DrawnTask):
  """Prompt '3:12,14,21,33,80=', response 'acd': the letters of the multiples.

  At least two options are right and one is wrong. A response is well formed if
  it has letters of options only, each at most once, in any order. Components,
  with S its letters and Y those of the right options:
    outcome: 1 if S = Y.
    partial: |S| / |Y| if S is a subset of Y, else 0.
    format: 1 if it is well formed; the others are 0 where it is not.
  The hash of a prompt decides its split, so no prompt is in two of them; within
  a split a prompt can occur under several indices.
  Source: "Reinforcing Video Reasoning with Focused Thinking" (TW-GRPO), the
  soft reward of questions with several answers.
  """

  num_options: int = ranged(5, 3, 10)
  num_train: int = ranged(4000, 1, 2**31 - 1)
  num_validation: int = ranged(500, 1, 2**31 - 1)
  num_test: int = ranged(1000, 1, 2**31 - 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  @property
  def letters(self) -> str:
    """The letters of the options."""
    return string.ascii_lowercase[: self.num_options]

  @property
  def alphabet(self) -> str:
    """The characters of prompts and responses."""
    return '0123456789:,=' + self.letters

  def example(self, split: str, index: int) -> Example:
    """Redraws until the prompt fits and belongs to the split."""
    base.check_index(self, split, index)
    (prompt, answer), _ = draws.first_of_split(
      split, 'choice', (self.seed, split, index), self._problem
    )
    return Example(prompt=prompt, answer=answer, id=index)

  def _problem(self, stream):
    """((prompt,), (prompt, right letters)); None if too few or all are."""
    divisor = stream.choice(_DIVISORS)
    numbers = [10 + stream.below(90) for _ in range(self.num_options)]
    prompt = f'{divisor}:{",".join(map(str, numbers))}='
    answer = ''.join(
      letter
      for letter, number in zip(self.letters, numbers, strict=True)
      if number % divisor == 0
    )
    fits = 2 <= len(answer) < self.num_options
    return ((prompt,), (prompt, answer)) if fits else None

  def target(self, example: Example) -> str:
    """All right letters, in the order of the options."""
    return example.answer

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The text before the end token is judged."""
    chosen, right = set(response), set(example.answer)
    formed = 0 < len(response) == len(chosen) and chosen <= set(self.letters)
    inside = formed and chosen <= right
    return {
      base.OUTCOME: float(formed and chosen == right),
      'partial': len(chosen) / len(right) if inside else 0.0,
      'format': float(formed),
    }

  def device_answers(self, examples: Sequence[Example], tokenizer: Any) -> Any:
    """(1 for each right option, else 0, i32[B, num_options]; lengths)."""
    from rl_jax.tasks import device_verifiers

    del tokenizer
    return device_verifiers.pad_rows(
      [[int(letter in e.answer) for letter in self.letters] for e in examples]
    )

  def reward_device(
    self, response_BT, length_B, answer_BA, answer_length_B, tokenizer
  ) -> dict[str, Any]:
    """The jittable twin of `reward`."""
    import jax.numpy as jnp

    from rl_jax.tasks import device_verifiers

    del answer_length_B
    kept_BT = device_verifiers.text_mask(response_BT, length_B, tokenizer)
    ids = [tokenizer.encode(letter)[0] for letter in self.letters]
    ids_11A = jnp.asarray(ids)[None, None]
    is_option_BTA = kept_BT[:, :, None] & (response_BT[:, :, None] == ids_11A)
    count_BA = is_option_BTA.sum(1)
    size_B = kept_BT.sum(1)
    formed_B = (size_B > 0) & (count_BA.sum(1) == size_B)
    formed_B &= (count_BA <= 1).all(1)
    inside_B = formed_B & (count_BA <= answer_BA).all(1)
    found = {
      base.OUTCOME: inside_B & (size_B == answer_BA.sum(1)),
      'partial': jnp.where(inside_B, size_B / answer_BA.sum(1), 0.0),
      'format': formed_B,
    }
    return {name: x.astype(jnp.float32) for name, x in found.items()}
