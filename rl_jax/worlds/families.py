"""Digits that are copied, turned, sorted or changed, and unlearnable rows."""

import dataclasses

from rl_jax.checks import check_range, checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example

NOISE = 'x'


def answer(family: str, digits: str) -> str:
  """The digits that a family makes of others; of NOISE they are drawn."""
  if family == NOISE:
    stream = draws.Draws('families noise', digits)
    return ''.join(str(stream.below(10)) for _ in digits)
  return {
    'c': digits,
    'r': digits[::-1],
    's': ''.join(sorted(digits)),
    'd': ''.join(sorted(digits, reverse=True)),
    'i': ''.join(str((int(x) + 1) % 10) for x in digits),
    'm': ''.join(str(9 - int(x)) for x in digits),
  }[family]


@dataclasses.dataclass(frozen=True)
@checked
class Families(DrawnTask):
  """Prompt 'r 3 1 4=', response '4 1 3': the first letter says what is done.

  c copies the digits, r turns their order, s sorts them up, d down, i adds 1
  modulo 10, m takes each from 9; the right answer of x is drawn, so that it
  cannot be learned. families: the letters that are drawn from; one that occurs
  twice is drawn twice as often. Components: `outcome`, 1 if all is equal, and
  `places`, the share of the right digits at their places.

  `target` is the right answer; of a share `wrong` of the prompts another one,
  in which one digit is changed (an imperfect teacher). The hash of a prompt
  decides its split.
  """

  families: str = 'crsdim'
  min_digits: int = ranged(4, 2)
  max_digits: int = ranged(4, 2, 9)
  wrong: float = ranged(0.0, 0.0, 1.0)
  num_train: int = ranged(2000, 1)
  num_validation: int = ranged(300, 1)
  num_test: int = ranged(300, 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  alphabet = '0123456789crsdimx= '

  def __post_init__(self):
    check_range(self, 'min_digits', 2, self.max_digits)
    unknown = sorted({*self.families} - {*'crsdim', NOISE})
    if unknown or not self.families:
      raise ValueError(
        f'Families.families = {self.families!r}: expected letters of crsdimx'
      )

  def example(self, split: str, index: int) -> Example:
    """The prompt of that index; its family is in `meta`."""
    base.check_index(self, split, index)
    (family, digits), _ = draws.first_of_split(
      split, 'families', (self.seed, split, index), self._draw
    )
    return Example(
      prompt=f'{family} {" ".join(digits)}=',
      answer=' '.join(answer(family, digits)),
      id=index,
      meta={'family': family},
    )

  def _draw(self, stream):
    family = stream.choice(self.families)
    count = self.min_digits + stream.below(
      self.max_digits - self.min_digits + 1
    )
    digits = ''.join(str(stream.below(10)) for _ in range(count))
    return (family, digits), (family, digits)

  def is_wrong(self, example: Example) -> bool:
    """Returns whether the teacher writes a wrong answer to this prompt."""
    stream = draws.Draws('families teacher', self.seed, example.prompt)
    return stream.uniform() < self.wrong

  def target(self, example: Example) -> str:
    """Returns what the teacher writes: the same for the same prompt."""
    if not self.is_wrong(example):
      return example.answer
    stream = draws.Draws('families slip', self.seed, example.prompt)
    digits = example.answer.split(' ')
    place = stream.below(len(digits))
    digits[place] = str((int(digits[place]) + 1 + stream.below(9)) % 10)
    return ' '.join(digits)

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Equality, and digits at their places."""
    right, written = example.answer.split(' '), response.split(' ')
    equal = sum(a == b for a, b in zip(right, written, strict=False))
    return {
      base.OUTCOME: float(response == example.answer),
      'places': equal / max(len(right), len(written)),
    }
