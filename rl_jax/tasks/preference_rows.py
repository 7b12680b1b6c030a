"""Files of preferences: pairs, labels, scores, or plain responses."""

import dataclasses
import functools
import json
from typing import Any

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import base, preference_forms
from rl_jax.tasks import rows as rows_lib
from rl_jax.tasks.base import Example, RecordedResponse, Task, TaskTraits
from rl_jax.tasks.preference_forms import STEP_END
from rl_jax.tasks.sources import BadRowError


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class PreferenceRows(Task):
  """Rows of one of the forms of `preference_forms`: files for TRL as they are.

  path: JSONL, Parquet, Arrow, a folder of `datasets`, or tfds:NAME; CSV, of
  which all values are texts. form 'auto': that of the first row. All rows have
  the same form and as many responses. Conversations are rendered by the model's
  chat template; of them the assistant's turns are trained. The last
  num_validation rows are held out.
  bad_rows: 'error' names file and row of the first bad row, 'skip' counts them.
  The outcome of a sampled response is equality with the first recorded one.
  arguments: variables of the chat template, such as enable_thinking; a row may
  have further ones, and `tools`.
  aspects: fields with a number that rates the response of a row; null and
  fields that are not there are labels that are missing. columns: as of
  QuestionAnswer.
  """

  path: str
  form: str = chosen('auto', ('auto', *preference_forms.FORMS))
  num_validation: int = ranged(0, 0)
  bad_rows: str = chosen('error', ('error', 'skip'))
  max_row_bytes: int = ranged(1_000_000, 1)
  arguments: dict[str, Any] = dataclasses.field(
    default_factory=dict, hash=False
  )
  aspects: tuple[str, ...] = ()
  columns: tuple[str, ...] | None = None
  reward_weights: dict[str, float] = base.outcome_only()
  traits = TaskTraits()  # `arguments` are those of prompts, not of episodes

  def num_prompts(self, split: str) -> int:
    """Rows before, or in, the held-out end; there is no test split."""
    base.check_split(split)
    total = len(self._rows())
    held_out = min(self.num_validation, total)
    counts = {'train': total - held_out, 'validation': held_out, 'test': 0}
    return counts[split]

  @property
  def num_recorded(self) -> int:
    """Responses of every row."""
    return len(_decoded(self._rows()[0])[1])

  def example(self, split: str, index: int) -> Example:
    """The index-th row of the split."""
    base.check_index(self, split, index)
    first = 0 if split == 'train' else self.num_prompts('train')
    row = self._rows()[first + index]
    prompt, recorded = _decoded(row)
    more: dict[str, Any] = {}
    meta: dict[str, Any] = {'recorded': recorded, base.PLACE: row.where}
    if self.columns:
      meta[base.COLUMNS] = row.columns
    if not isinstance(prompt, str):
      more['messages'], prompt = prompt, prompt[-1]['content']
      more['arguments'] = {**self.arguments, **json.loads(row.answer)}
    return Example(
      prompt=prompt,
      answer=_text(recorded[0]),
      id=index,
      meta=meta,
      **more,
    )

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """The responses of the row, the chosen one of a pair first."""
    return example.meta['recorded']

  def target(self, example: Example) -> str:
    """The first response: of a pair the chosen one."""
    return example.answer

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """1 if the text is that of the first response, exactly."""
    return {base.OUTCOME: float(response == example.answer)}

  def _rows(self):
    limits = self.bad_rows, self.max_row_bytes
    more = self.aspects, self.columns or ()
    return _load(self.path, self.form, *limits, *more)


def _text(recorded: RecordedResponse) -> str:
  return recorded.text or recorded.messages[-1]['content']


@functools.lru_cache(maxsize=8)
def _load(path, form, bad_rows, max_row_bytes, aspects, columns):
  first = {}  # form and number of responses of the first row

  def reader(record, where):
    found = form
    if form == 'auto':
      found = preference_forms.form_of(record, where)
    prompt, recorded = preference_forms.parse(record, found, where)
    if aspects:
      rated = preference_forms.aspects(record, aspects, found, where)
      recorded = (dataclasses.replace(recorded[0], aspects=rated),)
    shape = {'form': found, 'responses': len(recorded)}
    if recorded[0].distance is not None:
      shape['semantic_distance'] = True
    expected = first or shape
    if shape != expected:
      raise BadRowError(
        where,
        'other_form',
        f'this row has {shape}, the first one {expected}: one file, one form',
      )
    first.update(shape)
    arguments = preference_forms.arguments(record, prompt, where)
    responses = json.dumps([_encoded(x) for x in recorded])
    prompt, arguments = json.dumps(prompt), json.dumps(arguments)
    return None, rows_lib.Row(prompt, arguments, responses, where)

  return rows_lib.collect(
    path, 'train', reader, bad_rows, max_row_bytes, None, columns
  )


def _encoded(recorded):
  text = recorded.steps or recorded.text or recorded.messages
  numbers = [
    recorded.reward,
    recorded.label,
    recorded.step_labels,
    recorded.distance,
  ]
  return [text, *numbers, recorded.aspects]


def _decoded(row):
  """(prompt, responses) of a stored row."""
  prompt = json.loads(row.question)
  responses = []
  for text, *numbers, aspects in json.loads(row.solution):
    reward, label, step_labels, distance = numbers
    fields: dict[str, Any] = {'text': text}
    if step_labels:
      fields = {'text': ''.join(text), 'steps': tuple(text)}
    elif not isinstance(text, str):
      fields = {'messages': tuple(text)}
    fields |= {'reward': reward, 'label': label, 'distance': distance}
    fields |= {'step_labels': tuple(step_labels), 'aspects': tuple(aspects)}
    responses.append(RecordedResponse(**fields))
  return prompt if isinstance(prompt, str) else tuple(prompt), tuple(responses)


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class StepRows(PreferenceRows):
  """Rows of steps like PreferenceRows, which end as they are, without a new
  line.

  For alphabets without one. Rows are {prompt, completions, labels}, labels from
  0 to 1, one of each step.

  Raises: ValueError for rows without steps.
  """

  form: str = 'steps'

  def __post_init__(self):
    if self.form != 'steps':
      raise ValueError(f"StepRows.form = {self.form!r}: it is 'steps'")

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """The response, its steps without the ends that PreferenceRows adds."""
    (record,) = super().recorded(example)
    steps = tuple(step.removesuffix(STEP_END) for step in record.steps)
    return (dataclasses.replace(record, text=''.join(steps), steps=steps),)
