"""Any generator of the reasoning-gym package, by name."""

import dataclasses
import functools
import itertools
import json
from typing import Any

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import answers, base, gym_scores
from rl_jax.tasks.base import DrawnTask, Example
from rl_jax.tasks.templates import ChatTemplate, PlainTemplate
from rl_jax.verification import sandbox

_INSTRUCTION = (
  '{question}\nGive the final answer between <answer> and </answer> tags.'
)


_TRIED = 3  # problems whose own answers are judged at start
_NO_ANSWER = 'no answer'
_OFTEN = 64  # calls
_JUDGED = itertools.count()  # calls of this process


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class ReasoningGym(DrawnTask):
  """Problems of `reasoning_gym.create_dataset(generator, **options)`.

  Item i of a generator depends only on seed + i, so the splits are consecutive
  ranges of one data set (another seed would repeat shifted items). Generators
  with few different problems can still repeat one.

  Components: `score`, that of the generator in [0, 1] (see `gym_scores`);
  `outcome`, 1 if the score is 1; `format`, 1 if an answer is found that can be
  read: else it is wrong. Now and then the answer 'no answer' is judged; if that
  is right, the process no longer judges, and the run ends.
  Needs the extra 'tasks'.

  Raises: sandbox.BreachError from `reward`, if no answer is right.
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

  def example(self, split: str, index: int) -> Example:
    """The item of the generator at that place of the split."""
    base.check_index(self, split, index)
    start = {
      'train': 0,
      'validation': self.num_train,
      'test': self.num_train + self.num_validation,
    }[split]
    entry = self._dataset()[start + index]
    right = gym_scores.right_answer(self.generator, entry)
    return Example(
      **self.template.fields(entry['question']),
      answer=right or '',
      id=index,
      meta={'entry': entry},  # an argument of score_answer
    )

  def target(self, example: Example) -> str:
    """A right answer of the generator, in the form that is asked for.

    Raises: ValueError if the generator has none.
    """
    entry = example.meta['entry']
    right = gym_scores.right_answer(self.generator, entry)
    if right is None:
      raise ValueError(
        f'the reasoning-gym generator {self.generator!r} has no right answer '
        f'for example {example.id}: supervised training needs one'
      )
    if self.extract == 'answer_tags':
      return f' <answer>{right}</answer>'
    return f' {right}'

  def prepare(self) -> None:
    """Imports the package once (2 s), before workers are forked.

    Raises: RuntimeError if answers of the generator are not right.
    """
    dataset = self._dataset()
    for index in range(min(_TRIED, len(dataset))):
      entry = dataset[index]
      right = gym_scores.right_answer(self.generator, entry)
      if right is None:
        continue
      found = gym_scores.score(self.generator, dataset, right, entry)
      if found is None or (entry['answer'] is not None and found != 1.0):
        what = 'cannot be read' if found is None else f'has the score {found}'
        raise RuntimeError(
          f'reasoning-gym {self.generator!r} with options {self.options}: its '
          f'own answer {right!r:.80} to problem {index} {what}'
        )

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The generator's score of the extracted answer."""
    entry, dataset = example.meta['entry'], self._dataset()
    self._judge_no_answer(dataset, entry)
    text, score = example.prefill + response, None
    found = answers.extract(text, self.extract)
    if entry['answer'] == '' and answers.between_tags(text) is not None:
      found = found or ''
    if found is not None:
      score = gym_scores.score(self.generator, dataset, found, entry)
    return {
      base.OUTCOME: float(score == 1.0),
      'format': float(score is not None),
      'score': score or 0.0,
    }

  def _judge_no_answer(self, dataset, entry):
    """Every so often in every process, and at its first call."""
    if next(_JUDGED) % _OFTEN:
      return
    found = gym_scores.unchecked(self.generator, dataset, _NO_ANSWER, entry)
    if found == 1.0:
      raise sandbox.BreachError(
        f'reasoning-gym {self.generator!r}: the scorer of this process takes '
        f'{_NO_ANSWER!r} for a right answer. A response may have changed it: '
        f'the last {_OFTEN} rewards of each process cannot be trusted'
      )

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
  if generator == 'composite':
    raise ValueError(
      "ReasoningGym.generator = 'composite': use tasks.Mixture, a ReasoningGym "
      'task for each generator'
    )
  try:
    dataset = reasoning_gym.create_dataset(
      generator, size=size, seed=seed, **json.loads(options)
    )
  except (AssertionError, TypeError, ValueError) as error:
    raise ValueError(
      f'ReasoningGym.options of {generator!r} are not valid: {error}'
    ) from error
  gym_scores.check_known(generator, dataset)
  return dataset
