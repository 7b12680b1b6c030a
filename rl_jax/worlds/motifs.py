"""Texts with hidden motifs: a gold rule, and noisy comparisons by it."""

import dataclasses
import functools
import math

from rl_jax.checks import check_range, checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, RecordedResponse, Task

_LETTERS = 'abcdef'
_PAIRS = tuple(a + b for a in _LETTERS for b in _LETTERS)


@dataclasses.dataclass(frozen=True)
@checked
class Motifs(Task):
  """Prompt: a letter. Response: letters, of which some pairs are worth more.

    gold = different motifs in the text / num_motifs - penalty * repeats

  Motifs are num_motifs of the 36 pairs of letters, drawn from the seed; repeats
  are pairs of neighbours that the text has had before. Component: `outcome`,
  the gold score, at most 1.

  The data of an example are two texts of random letters, each letter the last
  with chance 1 / 8. In the train split the first counts as better with
  probability sigmoid(sharpness * (gold_1 - gold_2)), in the others if its gold
  score is larger. A reward model learns from num_train such comparisons.

  With annotators the comparison of index i is by annotator i % annotators. The
  last `minority` of them have another taste: as many motifs, none of which is
  one of the others'; their score of a response is the component `second`.
  With `costs` the component `cost` is the share of max_letters that are the
  letter which the first motifs hold most often: a high score needs some of it.
  """

  num_train: int = ranged(300, 1)  # comparisons
  num_motifs: int = ranged(6, 1, 36)
  max_letters: int = ranged(12, 2)
  penalty: float = ranged(0.1, 0.0)  # gold score for each repeat
  sharpness: float = ranged(10.0, 0.0)
  annotators: int = ranged(0, 0)
  minority: int = ranged(0, 0)  # of the annotators
  costs: bool = False
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  alphabet = _LETTERS
  num_recorded = 2

  def __post_init__(self):
    check_range(self, 'minority', 0, self.annotators)
    if self.minority:
      check_range(self, 'num_motifs', 1, len(_PAIRS) // 2)

  @functools.cached_property
  def motifs(self) -> frozenset[str]:
    """The pairs that count."""
    return frozenset(self._order[: self.num_motifs])

  @functools.cached_property
  def second_motifs(self) -> frozenset[str]:
    """Those that count for the minority."""
    return frozenset(self._order[self.num_motifs :][: self.num_motifs])

  @functools.cached_property
  def costly(self) -> str:
    """The letter that costs; of equally frequent ones the first."""
    letters = ''.join(self.motifs)
    return max(_LETTERS, key=letters.count)

  @property
  def _order(self):
    return sorted(
      _PAIRS, key=lambda p: draws.stable_hash('motif', self.seed, p)
    )

  def num_prompts(self, split: str) -> int:
    """num_train, and 256 in the other splits."""
    base.check_split(split)
    return self.num_train if split == 'train' else 256

  def example(self, split: str, index: int) -> Example:
    """The letter of that index; its texts are drawn from split and index."""
    base.check_index(self, split, index)
    letter = _LETTERS[index % len(_LETTERS)]
    return Example(prompt=letter, answer='', id=index, meta={'split': split})

  def annotator(self, index: int) -> int | None:
    """The annotator who compared the texts of that index."""
    return index % self.annotators if self.annotators else None

  def gold(self, text: str, second: bool = False) -> float:
    """The score that the reward model stands for; second: of the minority."""
    motifs = self.second_motifs if second else self.motifs
    pairs = [text[i : i + 2] for i in range(len(text) - 1)]
    found = len(motifs & set(pairs)) / self.num_motifs
    return found - self.penalty * (len(pairs) - len(set(pairs)))

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """Two texts, the one that was called better first."""
    split, annotator = example.meta['split'], self.annotator(example.id)
    first = self.annotators - self.minority  # of the minority
    gold = functools.partial(
      self.gold, second=annotator is not None and annotator >= first
    )
    stream = draws.Draws('motifs', self.seed, split, example.id)
    texts = [self._text(stream), self._text(stream)]
    # Of equal texts none is better; held-out labels compare gold scores.
    score = gold if split != 'train' else str
    while score(texts[0]) == score(texts[1]):
      texts[1] = self._text(stream)
    gap = gold(texts[0]) - gold(texts[1])
    chance = (1.0 + math.tanh(self.sharpness * gap / 2)) / 2  # the sigmoid
    better = stream.uniform() < chance if split == 'train' else gap > 0
    if not better:
      texts.reverse()
    return tuple(
      RecordedResponse(
        text=text, reward=float(label), label=label, annotator=annotator
      )
      for text, label in zip(texts, (1, 0), strict=True)
    )

  def _text(self, stream):
    text = stream.choice(_LETTERS)
    while len(text) < self.max_letters and stream.below(8):
      text += stream.choice(_LETTERS)
    return text

  def target(self, example: Example) -> str:
    """The text that was called better."""
    return self.recorded(example)[0].text

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The gold scores, 0 for a text of one letter or none, and the cost."""
    del example
    found = {base.OUTCOME: self.gold(response)}
    if self.minority:
      found['second'] = self.gold(response, second=True)
    if self.costs:
      found['cost'] = response.count(self.costly) / self.max_letters
    return found
