"""Questions which family leads from digits to others, and judged answers."""

import dataclasses

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example
from rl_jax.worlds import families

LETTERS = 'crsdim'
# How a judge of one answer is asked what AnsweredFamilies teaches.
TEMPLATE = '{prompt}{response}:'
LABELS = ('0', '1')


@dataclasses.dataclass(frozen=True)
@checked
class ShownFamilies(DrawnTask):
  """Prompt '3 1 4>4 1 3=', response 'r': a letter that makes one of the other.

  Letters are those of Families; where several lead there each is right, as c
  and r do from 3 1 3. Component: `outcome`, and `places`, the same, by which
  rewards of Families are weighted, too. verified: else both are 0, so that
  only a judge knows.
  Source: the tasks of understanding of "CRAFT-GUI: Curriculum-Reinforced Agent
  For GUI Tasks", which are questions about a screen, in small.
  """

  digits: int = ranged(4, 2, 9)
  verified: bool = True
  num_train: int = ranged(2000, 1)
  num_validation: int = ranged(300, 1)
  num_test: int = ranged(300, 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  alphabet = families.Families.alphabet + '>'

  def example(self, split: str, index: int) -> Example:
    """Drawn digits and what a drawn family makes of them."""
    base.check_index(self, split, index)
    (family, digits), _ = draws.first_of_split(
      split, 'shown families', (self.seed, split, index), self._draw
    )
    after = families.answer(family, digits)
    return Example(
      prompt=f'{" ".join(digits)}>{" ".join(after)}=', answer=family, id=index
    )

  def _draw(self, stream):
    digits = ''.join(str(stream.below(10)) for _ in range(self.digits))
    drawn = stream.choice(LETTERS), digits
    return drawn, drawn

  def target(self, example: Example) -> str:
    """The letter that was drawn."""
    return example.answer

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Returns whether the letter leads from the digits to the others."""
    right = float(self.verified and leads(example.prompt, response))
    return {base.OUTCOME: right, 'places': right}


def leads(prompt: str, response: str) -> bool:
  """Returns whether a response to a prompt of ShownFamilies is right."""
  before, after = prompt.rstrip('=').replace(' ', '').split('>')
  known = len(response) == 1 and response in LETTERS
  return known and families.answer(response, before) == after


@dataclasses.dataclass(frozen=True)
@checked
class AnsweredFamilies(DrawnTask):
  """Prompt '3 1 4>4 1 3=r:', response '1' if the letter is right, else '0'.

  Lessons for a judge of ShownFamilies: half of the letters are right ones, the
  others are drawn. errors: share of targets that are the wrong label, the same
  for the same prompt. Component: `outcome`.
  """

  digits: int = ranged(4, 2, 9)
  errors: float = ranged(0.0, 0.0, 1.0)
  num_train: int = ranged(4000, 1)
  num_validation: int = ranged(300, 1)
  num_test: int = ranged(300, 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  alphabet = ShownFamilies.alphabet + ':'

  def example(self, split: str, index: int) -> Example:
    """A question, and a letter."""
    base.check_index(self, split, index)
    asked = ShownFamilies(
      digits=self.digits,
      num_train=self.num_train,
      num_validation=self.num_validation,
      num_test=self.num_test,
      seed=self.seed,
    ).example(split, index)
    stream = draws.Draws('answered families', self.seed, split, index)
    letter = asked.answer
    if stream.uniform() < 0.5:
      letter = stream.choice(LETTERS)
    prompt = TEMPLATE.replace('{prompt}', asked.prompt)
    return Example(
      prompt=prompt.replace('{response}', letter),
      answer=LABELS[leads(asked.prompt, letter)],
      id=index,
    )

  def target(self, example: Example) -> str:
    """The label, or with chance `errors` the other one."""
    stream = draws.Draws('answered families teacher', example.prompt)
    wrong = stream.uniform() < self.errors
    return LABELS[(example.answer == LABELS[1]) != wrong]

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Equality."""
    return {base.OUTCOME: float(response == example.answer)}
