"""Letters that each topic wants at five places, and criteria that say them."""

from collections.abc import Sequence
import dataclasses

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, Task

_LETTERS, _TOPICS = 'abcdef', 'ghijklmnop'


@dataclasses.dataclass(frozen=True)
@checked
class RubricTopics(Task):
  """Prompt 'gk=', response five letters, each of which is one of six.

  Every topic, two letters, wants one letter at each place, drawn from the seed;
  the criterion '2c' says that it wants c at the second, and 'gk2c5a=' is a
  prompt that shows two of them. Components: `points`, the share of the criteria
  that are met, and `outcome`, 1 if all are. All splits have the same topics: a
  policy learns them by its samples.
  shown: the prompts of the train split are rows to learn from: of drawn topics,
  each with a drawn number of drawn criteria; the target meets them, and has
  drawn letters elsewhere.
  """

  num_topics: int = ranged(32, 1, 100)
  places: int = ranged(5, 1, 9)
  num_train: int = ranged(2000, 1)  # rows to learn from
  shown: bool = False
  seed: int = 0
  reward_weights: dict[str, float] = base.weights_field(points=1.0, outcome=0.0)

  alphabet = _LETTERS + _TOPICS + '123456789='

  def num_prompts(self, split: str) -> int:
    """num_topics, or num_train rows to learn from."""
    base.check_split(split)
    learns = self.shown and split == 'train'
    return self.num_train if learns else self.num_topics

  def example(self, split: str, index: int) -> Example:
    """The topic of that index, or the row to learn from."""
    base.check_index(self, split, index)
    if not (self.shown and split == 'train'):
      return self._topic(index)
    stream = draws.Draws('rubric rows', self.seed, index)
    plain = self._topic(stream.below(self.num_topics))
    letters = self._drawn(stream)
    order = sorted(range(self.places), key=lambda place: stream.uniform())
    kept = sorted(order[: stream.below(self.places + 1)])
    items = [f'{place + 1}{letters[place]}' for place in kept]
    row = dataclasses.replace(plain, answer=letters, id=index)
    return self.with_rubric(row, items)

  def _topic(self, index):
    name = _TOPICS[index // 10] + _TOPICS[index % 10]
    letters = self._drawn(draws.Draws('rubric topics', self.seed, name))
    return Example(prompt=f'{name}=', answer=letters, id=index)

  def _drawn(self, stream):
    return ''.join(stream.choice(_LETTERS) for _ in range(self.places))

  def rubric(self, example: Example) -> tuple[str, ...]:
    """A criterion for each place."""
    return tuple(f'{i + 1}{x}' for i, x in enumerate(example.answer))

  def with_rubric(self, example: Example, items: Sequence[str]) -> Example:
    """Criteria are written before the equals sign."""
    prompt = example.prompt.removesuffix('=') + ''.join(items) + '='
    return dataclasses.replace(example, prompt=prompt)

  def target(self, example: Example) -> str:
    """The letters that are wanted, or those of a row to learn from."""
    return example.answer

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Letters beyond the last place count as none: no criterion is met."""
    fits = len(response) <= self.places
    pairs = zip(example.answer, response, strict=False)
    met = fits * sum(want == given for want, given in pairs)
    return {
      base.OUTCOME: float(response == example.answer),
      'points': met / self.places,
    }
