"""Families whose answers are criticised: a wrong place, or the right answer."""

import dataclasses

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import draws
from rl_jax.tasks.base import Example
from rl_jax.worlds.families import Families


@dataclasses.dataclass(frozen=True)
@checked
class CriticisedFamilies(Families):
  """Families with critiques: 'r 3 1 4=4 2 3|2=' says that place 2 is wrong.

  critique: 'place', the first wrong place of a response, 0 of a right one; or
  'answer', the right answer after the bar. refined: the share of the prompts of
  the train split that are of that form, with a response in which one digit is
  changed, to learn from.
  """

  critique: str = chosen('place', ('place', 'answer'))
  refined: float = ranged(0.0, 0.0, 1.0)

  alphabet = Families.alphabet + '|'

  def example(self, split: str, index: int) -> Example:
    """The prompt of that index, with a critique where it is a refined one."""
    plain = super().example(split, index)
    stream = draws.Draws('criticised', self.seed, split, index)
    if split != 'train' or stream.uniform() >= self.refined:
      return plain
    digits = plain.answer.split(' ')
    place = stream.below(len(digits))
    digits[place] = str((int(digits[place]) + 1 + stream.below(9)) % 10)
    return self.criticised(plain, ' '.join(digits))

  def criticised(self, example: Example, response: str) -> Example:
    """The prompt, the response, and what is wrong with it.

    Of a response with letters only its digits are shown, as many at most as the
    answer has.
    """
    right = example.answer.split(' ')
    given = [x for x in response if x.isdigit()][: len(right)]
    said = example.answer
    if self.critique == 'place':
      pairs = zip(right, given, strict=False)
      wrong = [i for i, (want, x) in enumerate(pairs, 1) if want != x]
      missing = [len(given) + 1] if len(given) < len(right) else []
      said = str([*wrong, *missing, 0][0])
    prompt = f'{example.prompt}{" ".join(given)}|{said}='
    return dataclasses.replace(example, prompt=prompt)

  def spans(
    self, example: Example, response: str
  ) -> tuple[tuple[int, int, float], ...]:
    """Each digit: 1 at its right place, -1 where another or none belongs."""
    right = example.answer.split(' ')
    places = [i for i, x in enumerate(response) if x.isdigit()]
    return tuple(
      (
        place,
        place + 1,
        1.0 if [response[place]] == right[number : number + 1] else -1.0,
      )
      for number, place in enumerate(places)
    )
