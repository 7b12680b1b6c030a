"""Two answers to a prompt of Families, one of which is right."""

import dataclasses

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example
from rl_jax.worlds.families import Families

# How a judge of pairs asks what this task teaches.
TEMPLATE = '{prompt}{first}?{second}:'
LABELS = ('1', '2')


@dataclasses.dataclass(frozen=True)
@checked
class RankedFamilies(DrawnTask):
  """Prompt 'r 3 1 4=4 1 3?4 1 7:', response '1': the first answer is right.

  The other answer has one wrong digit. Components: `outcome`, 1 for the right
  number, and `tau`, the agreement with the true order of both answers, which
  counts: 1 if it is that, -1 if it is reversed or nothing that can be read.
  Prompts are those of Families with the same fields; see `score_lists.urpo`
  for lists of more answers.
  Source: the preference items of "URPO: A Unified Reward & Policy Optimization
  Framework for Large Language Models".
  """

  families: str = 'crsdim'
  digits: int = ranged(4, 2, 9)
  num_train: int = ranged(2000, 1)
  num_validation: int = ranged(300, 1)
  num_test: int = ranged(300, 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.weights_field(outcome=0.0, tau=1.0)

  alphabet = Families.alphabet + '?:'

  @property
  def _answered(self) -> Families:
    return Families(
      families=self.families,
      min_digits=self.digits,
      max_digits=self.digits,
      wrong=1.0,
      num_train=self.num_train,
      num_validation=self.num_validation,
      num_test=self.num_test,
      seed=self.seed,
    )

  def example(self, split: str, index: int) -> Example:
    """The two answers of that index, in an order that is drawn."""
    asked = self._answered.example(split, index)
    texts = [asked.answer, self._answered.target(asked)]
    second = draws.Draws('ranked families', self.seed, asked.prompt).below(2)
    if second:
      texts.reverse()
    return Example(
      prompt=f'{asked.prompt}{texts[0]}?{texts[1]}:',
      answer=LABELS[second],
      id=index,
    )

  def target(self, example: Example) -> str:
    """The number of the right answer."""
    return example.answer

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """1 or -1, by the whole response."""
    right = response == example.answer
    return {base.OUTCOME: float(right), 'tau': 1.0 if right else -1.0}
