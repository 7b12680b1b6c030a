"""Families whose prompt is written out before it is answered."""

import dataclasses

from rl_jax.checks import checked, ranged
from rl_jax.tasks import draws
from rl_jax.tasks.base import Example
from rl_jax.worlds import families
from rl_jax.worlds.families import Families

MARK = '|'
_ORDERS = 'crsd'  # families that only order the digits


@dataclasses.dataclass(frozen=True)
@checked
class ExpandedFamilies(Families):
  """Prompt 's 3 1 2=', response '1 2 3|1 2 3': what is before | is a longer
  prompt, and what follows it the answer.

  The expansion writes the digits in the order in which the answer takes them.
  The answer is judged by the prompt, as in Families, and no expansion is: its
  writer learns from the answers only. Component `expanded`: 1 for the right
  expansion, beside `outcome` and `places`. A response without | has no answer.

  `target` expands the prompt and answers what it has written; of a share
  `slips` of the prompts two neighbours of the expansion are exchanged, so that
  the answer, which follows it, is wrong, too. There is no expansion of x.
  """

  slips: float = ranged(0.0, 0.0, 1.0)

  alphabet = Families.alphabet + MARK

  def __post_init__(self):
    super().__post_init__()
    if families.NOISE in self.families:
      raise ValueError(
        f'ExpandedFamilies.families = {self.families!r}: x has no expansion'
      )

  def expansion(self, example: Example) -> list[str]:
    """The digits in the order of the answer."""
    family = example.meta['family']
    digits = example.prompt.removeprefix(family).strip(' =').split(' ')
    order = family if family in _ORDERS else 'c'
    return list(families.answer(order, ''.join(digits)))

  def target(self, example: Example) -> str:
    """Returns what the teacher writes: the same for the same prompt."""
    digits = self.expansion(example)
    stream = draws.Draws('expansion teacher', self.seed, example.prompt)
    if stream.uniform() < self.slips:
      place = stream.below(len(digits) - 1)
      digits[place : place + 2] = digits[place + 1], digits[place]
    family = example.meta['family']
    rule = 'c' if family in _ORDERS else family
    answered = families.answer(rule, ''.join(digits))
    return f'{" ".join(digits)}{MARK}{" ".join(answered)}'

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The reward of the answer, and whether the expansion is right."""
    expansion, _, answered = response.partition(MARK)
    right = expansion == ' '.join(self.expansion(example))
    found = super().reward(example, answered)
    return {**found, 'expanded': float(right)}
