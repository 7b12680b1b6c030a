"""Three kinds of answers, of which none beats both others."""

import dataclasses
import re

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base
from rl_jax.tasks.base import Example, Task

KINDS = ('rock', 'paper', 'scissors')
# The chance that a kind is preferred to another one; else one less it, or 1/2.
CHANCES = {
  ('rock', 'scissors'): 0.9,
  ('scissors', 'paper'): 0.7,
  ('paper', 'rock'): 0.6,
}
# Nothing is preferred to these shares of the kinds in more than half the cases.
NASH = {'rock': 2 / 7, 'paper': 4 / 7, 'scissors': 1 / 7}
PAIRS = 'Task: {prompt}\nFirst: {first}\nSecond: {second}\n'
ONE = 'Task: {prompt}\nResponse: {response}\n'
_ANSWERS, _PROMPTS = 'xyz', 'abcdef'
# Prompt k: the kind of each answer, all orders of the three.
_ORDERS = ((0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (2, 1, 0), (1, 0, 2))
_PAIR = re.compile(r'Task: (\w)=\nFirst: ([^\n]*)\nSecond: ([^\n]*)\n\Z')
_ONE = re.compile(r'Task: (\w)=\nResponse: ([^\n]*)\n\Z')


def kind(prompt: str, answer: str) -> str | None:
  """The kind of an answer to the prompt of that letter; None: of none."""
  if len(answer) != 1 or answer not in _ANSWERS:
    return None
  return KINDS[_ORDERS[_PROMPTS.index(prompt)][_ANSWERS.index(answer)]]


def chance(first: str | None, second: str | None) -> float:
  """The probability that the first kind is preferred; None loses to a kind."""
  if first is None or second is None:
    return 0.5 + 0.5 * ((first is not None) - (second is not None))
  if (second, first) in CHANCES:
    return 1.0 - CHANCES[second, first]
  return CHANCES.get((first, second), 0.5)


def preference(question: str) -> float:
  """The chance of the first answer, for a Judge with the template PAIRS."""
  match = _PAIR.search(question)
  if match is None:
    raise ValueError(f'{question!r:.200} is not of the form {PAIRS!r}')
  prompt, *answers = match.groups()
  return chance(*(kind(prompt, answer) for answer in answers))


def mean_preference(question: str) -> float:
  """The mean chance of an answer against the three kinds, a score of it.

  Scores of the model of Bradley and Terry have this order, if all kinds are
  compared equally often. For a Judge with the template ONE.
  """
  match = _ONE.search(question)
  if match is None:
    raise ValueError(f'{question!r:.200} is not of the form {ONE!r}')
  own = kind(*match.groups())
  return sum(chance(own, other) for other in KINDS) / len(KINDS)


def exploitability(shares: dict[str, float]) -> float:
  """The preference of the best kind to these shares, less a half."""
  return max(
    sum(share * chance(own, other) for other, share in shares.items()) - 0.5
    for own in KINDS
  )


@dataclasses.dataclass(frozen=True)
@checked
class CircularTaste(Task):
  """Prompt 'a=', response x, y or z, each of another kind for every prompt.

  Rock is preferred to scissors in 90% of the cases, scissors to paper in 70%,
  paper to rock in 60%: only the judges of this file say so. Components, all of
  weight 0: `rock`, `paper`, `scissors`, 1 for an answer of that kind, and
  `outcome`, 1 for any of them.
  """

  num_train: int = ranged(6, 1, 6)
  reward_weights: dict[str, float] = base.weights_field(
    outcome=0.0, rock=0.0, paper=0.0, scissors=0.0
  )

  alphabet = _ANSWERS + _PROMPTS + '='

  def num_prompts(self, split: str) -> int:
    """The same prompts in all splits."""
    base.check_split(split)
    return self.num_train

  def example(self, split: str, index: int) -> Example:
    """The prompt of that letter."""
    base.check_index(self, split, index)
    return Example(prompt=f'{_PROMPTS[index]}=', answer='', id=index)

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The kind of the answer."""
    own = kind(example.prompt[0], response)
    found = {name: float(name == own) for name in KINDS}
    return {base.OUTCOME: float(own is not None), **found}
