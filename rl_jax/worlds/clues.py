"""A task of reading clues to a letter, whose answers stay uncertain."""

import collections
from collections.abc import Sequence
import dataclasses
import string
from typing import Any

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example

ABSTAIN = '?'
ABSTAINS_EVERY = 5  # target of supervised training


@dataclasses.dataclass(frozen=True)
@checked
class Clues(DrawnTask):
  """Prompt 'abbcb=', response 'b', or '?' for no answer.

  The answer is a letter drawn uniformly; each clue is the answer with
  probability `reliability`, else one of the other letters. So

    P(y | prompt) ~ (reliability / other)^(clues that are y),
    other = (1 - reliability) / (num_letters - 1)

  and no policy can be right more often than max_y P(y | prompt). Components:
    outcome: 1 for the answer.
    abstained: 1 for '?'.
  With weights 1 and u the best policy abstains iff max_y P(y | prompt) < u.
  Every index draws its answer and its clues; prompts repeat, also over splits.
  """

  num_letters: int = ranged(4, 2, 26)
  num_clues: int = ranged(8, 1, 32)
  reliability: float = ranged(0.4, 0.0, 1.0, open_low=True, open_high=True)
  num_train: int = ranged(20000, 1, 2**31 - 1)
  num_validation: int = ranged(500, 1, 2**31 - 1)
  num_test: int = ranged(3000, 1, 2**31 - 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  @property
  def letters(self) -> str:
    """The options."""
    return string.ascii_lowercase[: self.num_letters]

  @property
  def alphabet(self) -> str:
    """The characters of prompts and responses."""
    return self.letters + '=' + ABSTAIN

  def example(self, split: str, index: int) -> Example:
    """The clues of that index."""
    base.check_index(self, split, index)
    stream = draws.Draws('clues', self.seed, split, index)
    answer = stream.choice(self.letters)
    others = self.letters.replace(answer, '')
    clues = (
      answer if stream.uniform() < self.reliability else stream.choice(others)
      for _ in range(self.num_clues)
    )
    return Example(prompt=''.join(clues) + '=', answer=answer, id=index)

  def posterior(self, example: Example) -> tuple[float, ...]:
    """P(letter is the answer | prompt) of each letter, exact."""
    counts = collections.Counter(example.prompt)
    other = (1.0 - self.reliability) / (self.num_letters - 1)
    weights = [(self.reliability / other) ** counts[y] for y in self.letters]
    return tuple(weight / sum(weights) for weight in weights)

  def target(self, example: Example) -> str:
    """The letter that was drawn; of every fifth row '?'.

    So a policy of supervised training abstains at times, and RL can learn when.
    """
    return ABSTAIN if example.id % ABSTAINS_EVERY == 0 else example.answer

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The text before the end token is judged."""
    return {
      base.OUTCOME: float(response == example.answer),
      'abstained': float(response == ABSTAIN),
    }

  def device_answers(self, examples: Sequence[Example], tokenizer: Any) -> Any:
    """(id of the answer i32[B, 1], ones i32[B])."""
    from rl_jax.tasks import device_verifiers

    return device_verifiers.answer_tokens(examples, tokenizer)

  def reward_device(
    self, response_BT, length_B, answer_BA, answer_length_B, tokenizer
  ) -> dict[str, Any]:
    """The jittable twin of `reward`."""
    from rl_jax.tasks import device_verifiers

    kept_BT = device_verifiers.text_mask(response_BT, length_B, tokenizer)
    _, abstained_B = device_verifiers.one_of(
      response_BT, kept_BT, tokenizer.encode(ABSTAIN)
    )
    return {
      base.OUTCOME: device_verifiers.exact_match(
        response_BT, kept_BT, answer_BA, answer_length_B
      ),
      'abstained': abstained_B.astype('float32'),
    }
