"""Questions whose answers are worth what a file says."""

import dataclasses
import functools

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base
from rl_jax.tasks import rows as rows_lib
from rl_jax.tasks.base import Example, Task
from rl_jax.tasks.sources import BadRowError


@dataclasses.dataclass(frozen=True)
@checked
class AdviceTable(Task):
  """Prompt '-n-:', response 'k': the reward of a text is that of its row.

  path: rows {prompt, scores: {text: number}}, of which the last one of a prompt
  counts. Components: `score`, 0 for any other text, which counts, and
  `outcome`, 1 for a text of the largest score. `target` is the first of these.
  All splits have all rows.
  """

  path: str
  max_row_bytes: int = ranged(1_000_000, 1)
  reward_weights: dict[str, float] = base.weights_field(outcome=0.0, score=1.0)

  def num_prompts(self, split: str) -> int:
    """The prompts of the file."""
    base.check_split(split)
    return len(self._rows)

  def example(self, split: str, index: int) -> Example:
    """The row of that index."""
    base.check_index(self, split, index)
    prompt, scores = tuple(self._rows.items())[index]
    return Example(
      prompt=prompt, answer='', id=index, meta={'scores': dict(scores)}
    )

  def target(self, example: Example) -> str:
    """A text with the largest score."""
    scores = example.meta['scores']
    return max(scores, key=scores.get)

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The score of the whole response."""
    scores = example.meta['scores']
    best = response in scores and scores[response] == max(scores.values())
    return {base.OUTCOME: float(best), 'score': scores.get(response, 0.0)}

  @functools.cached_property
  def _rows(self) -> dict[str, dict[str, float]]:
    """{prompt: scores} of the file.

    Raises: BadRowError naming a row without them.
    """
    found = {}
    for file, number, row in rows_lib.read_records(
      self.path, 'train', self.max_row_bytes, None
    ):
      if isinstance(row, BadRowError):
        raise row
      prompt, scores = row.get('prompt'), row.get('scores')
      texts = isinstance(prompt, str) and isinstance(scores, dict) and scores
      if not texts or not all(
        isinstance(x, (int, float)) for x in scores.values()
      ):
        raise BadRowError(
          f'{file}{number}',
          'wrong_type',
          f'prompt {prompt!r} and scores {scores!r}: expected a text and '
          '{text: number}',
        )
      found[prompt] = scores
    return found
