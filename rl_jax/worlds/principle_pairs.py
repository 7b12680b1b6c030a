"""Digits that are better by the principles of a topic, which a rubric names."""

from collections.abc import Callable
import dataclasses
import itertools

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example

_LETTERS = 'ghijklmnpq'
DIGITS = 4
# How a judge of pairs is asked, with what follows a topic as its rubric.
TEMPLATE = '{prompt}{rubric}|{first}?{second}:'
LABELS = ('1', '2')


def _rising(digits: str) -> int:
  return sum(a < b for a, b in itertools.pairwise(digits))


def _falling(digits: str) -> int:
  return _rising(digits[::-1])


def _even(digits: str) -> int:
  return sum(int(x) % 2 == 0 for x in digits)


def _small(digits: str) -> int:
  return sum(x < '5' for x in digits)


def _odd(digits: str) -> int:
  return len(digits) - _even(digits)


def _big(digits: str) -> int:
  return len(digits) - _small(digits)


PRINCIPLES: dict[str, Callable[[str], int]] = {
  'e': _even,
  'o': _odd,
  's': _small,
  'b': _big,
  'u': _rising,
  'd': _falling,
}
_OPPOSITES = ('eo', 'sb', 'ud')
RUBRICS = tuple(
  a + b
  for a, b in itertools.combinations('eosbud', 2)
  if a + b not in _OPPOSITES
)


def met(rubric: str, digits: str) -> int:
  """The number of times that digits meet the principles of a rubric.

  e and o count even and odd digits, s and b those below 5 and the others, u and
  d neighbours that rise and fall.
  """
  return sum(PRINCIPLES[letter](digits) for letter in rubric)


@dataclasses.dataclass(frozen=True)
@checked
class PrinciplePairs(DrawnTask):
  """Prompt 'ghes|4021?7193:', response '1': the first digits are better.

  A topic is two letters; its rubric is one of RUBRICS, two principles that do
  not oppose each other, drawn from the seed, and the prompt shows it. Better is
  what meets them more often (`met`), which is never equal. All splits have the
  same topics, with other digits. Component: `outcome`.
  """

  num_topics: int = ranged(60, 1, len(_LETTERS) ** 2)
  num_train: int = ranged(4000, 1)
  num_validation: int = ranged(600, 1)
  num_test: int = ranged(600, 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  alphabet = _LETTERS + ''.join(PRINCIPLES) + '0123456789|?:='

  def topic(self, number: int) -> str:
    """Its two letters."""
    first, second = divmod(number, len(_LETTERS))
    return _LETTERS[first] + _LETTERS[second]

  def rubric_of(self, topic: str) -> str:
    """The principles that count for a topic."""
    stream = draws.Draws('principles', self.seed, topic)
    return stream.choice(RUBRICS)

  def example(self, split: str, index: int) -> Example:
    """Two drawn responses to a drawn topic."""
    base.check_index(self, split, index)
    stream = draws.Draws('principle pairs', self.seed, split, index)
    topic = self.topic(stream.below(self.num_topics))
    rubric = self.rubric_of(topic)
    one, two = drawn(stream), drawn(stream)
    while met(rubric, one) == met(rubric, two):
      two = drawn(stream)
    return Example(
      prompt=f'{topic}{rubric}|{one}?{two}:',
      answer=better(rubric, one, two),
      id=index,
    )

  def target(self, example: Example) -> str:
    """The number of the better response."""
    return example.answer

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Exact equality."""
    return {base.OUTCOME: float(response == example.answer)}


def drawn(stream: draws.Draws) -> str:
  """A response: DIGITS digits."""
  return ''.join(str(stream.below(10)) for _ in range(DIGITS))


def better(rubric: str, one: str, two: str) -> str:
  """The label of what meets a rubric more often; '' if both do alike."""
  first, second = met(rubric, one), met(rubric, two)
  return '' if first == second else LABELS[first < second]
