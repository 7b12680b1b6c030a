"""Words to be written backwards, with part marks."""

import dataclasses

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example


@dataclasses.dataclass(frozen=True)
@checked
class BackwardWords(DrawnTask):
  """Prompt 'abca=', answer 'acba'; the hash of a word decides its split.

  Components: `outcome`, 1 if it is equal, and `places`, the letters in place
  over the longer of answer and response.
  """

  length: int = ranged(4, 3, 20)  # splits of fewer letters may be empty
  num_train: int = ranged(3000, 1)
  num_validation: int = ranged(500, 1)
  num_test: int = ranged(500, 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.weights_field(places=1.0)

  alphabet = 'abcdefgh='  # for a character tokenizer

  def example(self, split: str, index: int) -> Example:
    """The word of that index."""
    base.check_index(self, split, index)
    word, _ = draws.first_of_split(
      split, 'backward', (self.seed, split, index), self._word
    )
    return Example(prompt=f'{word}=', answer=word[::-1], id=index)

  def target(self, example: Example) -> str:
    """The word backwards."""
    return example.answer

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Equality, and letters in place."""
    pairs = zip(example.answer, response, strict=False)
    right = sum(a == b for a, b in pairs)
    longest = max(len(example.answer), len(response))
    outcome = float(response == example.answer)
    return {base.OUTCOME: outcome, 'places': right / longest}

  def _word(self, stream):
    word = ''.join(stream.choice('abcdefgh') for _ in range(self.length))
    return (word,), word
