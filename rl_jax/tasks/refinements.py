"""Prompts that show a reference answer, which the policy is to improve."""

import dataclasses
import functools
import json
from typing import ClassVar

from rl_jax.checks import checked, chosen
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, RecordedResponse
from rl_jax.tasks.joined_pairs import JoinedTexts

QUESTION, REFERENCE = 'question', 'reference'  # in Example.meta


@dataclasses.dataclass(frozen=True)
@checked
class Refinements(JoinedTexts):
  """A task of pairs whose prompts are 'prompt reference separator'.

  The only response of the data is the chosen one. shown: the reference is the
  'rejected' response, or with 'data' that or the chosen one, by the hash of
  seed and prompt. references: {split: file of `experiments.evaluate --out` on
  the task}; then it is the response to that prompt, and only splits with a file
  have prompts. Rewards are those of the task. Example.meta has the prompt of
  the task, `question`, and the `reference`, for
  Judge(reads='value', template='{question}{response}SEPARATOR{reference}') with
  a model of ReferencedPairs.
  Source: PIT, "Enable Language Models to Implicitly Learn Self-Improvement From
  Data", 2023; reconstructed.
  """

  # They read the prompt.
  not_passed: ClassVar[tuple[str, ...]] = (
    'hinted',
    'hinted_by',
    'with_examples',
    'with_rubric',
    'criticised',
  )
  num_recorded = 1

  shown: str = chosen('rejected', ('rejected', 'data'))
  references: dict[str, str] = dataclasses.field(
    default_factory=dict, hash=False
  )
  seed: int = 0

  def __post_init__(self):
    super().__post_init__()
    for split in self.references:
      base.check_split(split)

  def num_prompts(self, split: str) -> int:
    """The number of the task's prompts that have a reference."""
    base.check_split(split)
    count = self.task.num_prompts(split)
    if self.references:
      path = self.references.get(split)
      count = min(count, len(_responses(path)) if path else 0)
    return count

  def example(self, split: str, index: int) -> Example:
    """The task's, with the reference after its prompt."""
    base.check_index(self, split, index)
    found = self.task.example(split, index)
    if found.messages or found.prefill or found.parts:
      raise ValueError(
        f'Refinements.task: {type(self.task).__name__} has prompts that are '
        'more than a text'
      )
    if self.references:
      reference = _responses(self.references[split])[index]
    else:
      stream = draws.Draws('refinements', self.seed, found.prompt)
      place = stream.below(2) if self.shown == 'data' else 1
      reference = self.pair(found)[place].text
    return dataclasses.replace(
      found,
      prompt=found.prompt + reference + self.separator,
      meta={**found.meta, QUESTION: found.prompt, REFERENCE: reference},
    )

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """The chosen response."""
    return self.pair(_inner(example))[:1]

  def target(self, example: Example) -> str:
    return self.task.target(_inner(example))

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The task's rewards, whatever the reference is."""
    return self.task.reward(_inner(example), response)


def _inner(example: Example) -> Example:
  """The example of the task."""
  meta = dict(example.meta)
  prompt = meta.pop(QUESTION)
  del meta[REFERENCE]
  return dataclasses.replace(example, prompt=prompt, meta=meta)


@functools.lru_cache
def _responses(path: str) -> tuple[str, ...]:
  """The responses to all prompts of a split, in their order."""
  with open(path, encoding='utf-8') as file:
    try:
      found = json.load(file)['responses']
    except (ValueError, TypeError, KeyError):
      found = None
  if not isinstance(found, list) or not all(isinstance(x, str) for x in found):
    raise ValueError(
      f'Refinements.references: {path} is not a file of experiments.evaluate '
      '--out: expected {"responses": [texts]}'
    )
  return tuple(found)
