"""Any generator of the reasoning-gym package, by name."""

import dataclasses
import functools
import json
from typing import Any

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import answers, base
from rl_jax.tasks.base import Example
from rl_jax.tasks.templates import ChatTemplate, PlainTemplate

_INSTRUCTION = (
  '{question}\nGive the final answer between <answer> and </answer> tags.'
)


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class ReasoningGym:
  """Problems of `reasoning_gym.create_dataset(generator, **options)`.

  Item i of a generator depends on seed + i alone, so the splits are consecutive
  ranges of one data set (another seed would repeat shifted items). Generators
  with few different problems can still repeat one.

  Components: `score`, the generator's own score in [0, 1]; `outcome`, 1 if the
  score is 1; `format`, 1 if an answer is found. Needs the extra 'tasks'.
  """

  generator: str
  options: dict[str, Any] = dataclasses.field(default_factory=dict, hash=False)
  num_train: int = ranged(10_000, 1)
  num_validation: int = ranged(500, 1)
  num_test: int = ranged(1000, 1)
  seed: int = 0
  template: PlainTemplate | ChatTemplate = PlainTemplate(_INSTRUCTION)
  extract: str = chosen('answer_tags', answers.MODES)
  reward_weights: dict[str, float] = base.outcome_only()

  def num_prompts(self, split: str) -> int:
    """As configured."""
    return base.configured_size(self, split)

  def example(self, split: str, index: int) -> Example:
    """The item of the generator at that place of the split."""
    base.check_index(self, split, index)
    start = {
      'train': 0,
      'validation': self.num_train,
      'test': self.num_train + self.num_validation,
    }[split]
    entry = self._dataset()[start + index]
    return Example(
      **self.template.fields(entry['question']),
      answer=str(entry['answer']),
      id=index,
      meta={'entry': entry},  # an argument of score_answer
    )

  def target(self, example: Example) -> str:
    """The generator's own answer, in the form that is asked for."""
    if self.extract == 'answer_tags':
      return f' <answer>{example.answer}</answer>'
    return f' {example.answer}'

  def prepare(self) -> None:
    """Imports the package once (2 s), before workers are forked."""
    self._dataset()

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The generator's score of the extracted answer."""
    found = answers.extract(example.prefill + response, self.extract)
    if found is None:
      return {base.OUTCOME: 0.0, 'format': 0.0, 'score': 0.0}
    score = float(self._dataset().score_answer(found, example.meta['entry']))
    return {base.OUTCOME: float(score >= 1.0), 'format': 1.0, 'score': score}

  def _dataset(self):
    size = self.num_train + self.num_validation + self.num_test
    options = json.dumps(self.options, sort_keys=True)
    return _create(self.generator, self.seed, size, options)


@functools.lru_cache(maxsize=8)
def _create(generator, seed, size, options):
  try:
    import reasoning_gym
    from reasoning_gym.factory import DATASETS
  except ImportError as error:
    raise ImportError(
      f'the task {generator!r} needs the package reasoning-gym: '
      "pip install 'rl_jax[tasks]'"
    ) from error
  if generator not in DATASETS:
    raise ValueError(
      f'unknown reasoning-gym generator {generator!r}; known: '
      + ', '.join(sorted(DATASETS))
    )
  try:
    return reasoning_gym.create_dataset(
      generator, size=size, seed=seed, **json.loads(options)
    )
  except (AssertionError, TypeError, ValueError) as error:
    raise ValueError(
      f'ReasoningGym.options of {generator!r} are not valid: {error}'
    ) from error
