"""Texts that are written under several instructions."""

import dataclasses

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example
from rl_jax.worlds import instruction_pairs
from rl_jax.worlds.instruction_pairs import LENGTH, LETTERS, InstructionPairs


@dataclasses.dataclass(frozen=True)
@checked
class InstructedTexts(DrawnTask):
  """Prompt '?BE=', response 'abcadd': six letters under two or three rules.

  Prompt and response together are a text that InstructionPairs compares, so
  that its reward models score samples of this task. Components: `formed`, 1 for
  six letters of the texts, which is all that the comparisons have shown to a
  reward model, and `outcome`, the share of the instructions that the response
  follows, 0 for what is not formed. `target` is a text of random letters, which
  is what a policy writes that has learned the form only.
  """

  num_train: int = ranged(2000, 1)
  num_validation: int = ranged(300, 1)
  num_test: int = ranged(300, 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.weights_field(outcome=1.0, formed=0.0)

  alphabet = InstructionPairs.alphabet

  def example(self, split: str, index: int) -> Example:
    """The instructions of that index."""
    base.check_index(self, split, index)
    stream = draws.Draws('instructed texts', self.seed, split, index)
    asked = instruction_pairs.drawn_instructions(stream, 2 + stream.below(2))
    return Example(
      prompt=f'?{asked}=', answer='', id=index, meta={'asked': asked}
    )

  def target(self, example: Example) -> str:
    """Random letters: the same for the same index and instructions."""
    stream = draws.Draws(
      'instructed targets', self.seed, example.id, example.prompt
    )
    return ''.join(stream.choice(LETTERS) for _ in range(LENGTH))

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The form, and the share of the instructions that is followed."""
    formed = len(response) == LENGTH and set(response) <= set(LETTERS)
    share = instruction_pairs.followed(example.meta['asked'], response)
    return {base.OUTCOME: share * formed, 'formed': float(formed)}
