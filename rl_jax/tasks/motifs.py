"""Texts with hidden motifs: a gold rule, and noisy comparisons by it."""

import dataclasses
import functools
import math

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, Logged

_LETTERS = 'abcdef'
_PAIRS = tuple(a + b for a in _LETTERS for b in _LETTERS)


@dataclasses.dataclass(frozen=True)
@checked
class Motifs:
  """Prompt: a letter. Response: letters, of which some pairs are worth more.

    gold = different motifs in the text / num_motifs - penalty * repeats

  Motifs are num_motifs of the 36 pairs of letters, drawn from the seed; repeats
  are pairs of neighbours that the text has had before. Component: `outcome`,
  the gold score, at most 1.

  The data of an example are two texts of random letters, each letter the last
  with chance 1 / 8. In the train split the first counts as better with
  probability sigmoid(sharpness * (gold_1 - gold_2)), in the others if its gold
  score is larger. A reward model learns from num_train such comparisons.
  """

  num_train: int = ranged(300, 1)  # comparisons
  num_motifs: int = ranged(6, 1, 36)
  max_letters: int = ranged(12, 2)
  penalty: float = ranged(0.1, 0.0)  # gold score for each repeat
  sharpness: float = ranged(10.0, 0.0)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  alphabet = _LETTERS
  num_logged = 2

  @functools.cached_property
  def motifs(self) -> frozenset[str]:
    """The pairs that count."""
    order = sorted(
      _PAIRS, key=lambda p: draws.stable_hash('motif', self.seed, p)
    )
    return frozenset(order[: self.num_motifs])

  def num_prompts(self, split: str) -> int:
    """num_train, and 256 in the other splits."""
    base.check_split(split)
    return self.num_train if split == 'train' else 256

  def example(self, split: str, index: int) -> Example:
    """The letter of that index; its texts are drawn from split and index."""
    base.check_index(self, split, index)
    letter = _LETTERS[index % len(_LETTERS)]
    return Example(prompt=letter, answer='', id=index, meta={'split': split})

  def gold(self, text: str) -> float:
    """The score that the reward model stands for."""
    pairs = [text[i : i + 2] for i in range(len(text) - 1)]
    found = len(self.motifs & set(pairs)) / self.num_motifs
    return found - self.penalty * (len(pairs) - len(set(pairs)))

  def logged(self, example: Example) -> tuple[Logged, ...]:
    """Two texts, the one that was called better first."""
    split = example.meta['split']
    stream = draws.Draws('motifs', self.seed, split, example.id)
    texts = [self._text(stream), self._text(stream)]
    # Of equal texts none is better; held-out labels compare gold scores.
    score = self.gold if split != 'train' else str
    while score(texts[0]) == score(texts[1]):
      texts[1] = self._text(stream)
    gap = self.gold(texts[0]) - self.gold(texts[1])
    chance = (1.0 + math.tanh(self.sharpness * gap / 2)) / 2  # the sigmoid
    better = stream.uniform() < chance if split == 'train' else gap > 0
    if not better:
      texts.reverse()
    return tuple(
      Logged(text=text, reward=float(label), label=label)
      for text, label in zip(texts, (1, 0), strict=True)
    )

  def _text(self, stream):
    text = stream.choice(_LETTERS)
    while len(text) < self.max_letters and stream.below(8):
      text += stream.choice(_LETTERS)
    return text

  def target(self, example: Example) -> str:
    """The text that was called better."""
    return self.logged(example)[0].text

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The gold score; 0 for a text of one letter or none."""
    del example
    return {base.OUTCOME: self.gold(response)}
