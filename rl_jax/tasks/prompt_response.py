"""Prompt/response pairs from files of rows, for supervised training."""

import dataclasses
import functools
from typing import Any

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import base
from rl_jax.tasks import rows as rows_lib
from rl_jax.tasks.base import Example, RecordedResponse, Task
from rl_jax.tasks.sources import BadRowError
from rl_jax.tasks.templates import ChatTemplate, PlainTemplate


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class PromptResponse(Task):
  """Rows {"prompt": ..., "response": ...}; the text is used unchanged, but
  special tokens that it spells are ordinary text.

  prompt, response: names of fields, 'a.b' for the field b of the field a. The
  prompt may be a conversation, for which `template` is null or a ChatTemplate.
  The last num_validation rows of the file are held out. The outcome is exact
  equality with the response. bad_rows: 'error' names file and line of the first
  bad row, 'skip' counts them. template: around the prompt; with a ChatTemplate
  the response is the assistant's turn, which the model's template ends (after
  a `prefill` it ends with the tokenizer's end token). columns: as of
  QuestionAnswer.
  """

  path: str
  prompt: str = 'prompt'
  response: str = 'response'
  template: PlainTemplate | ChatTemplate | None = None
  num_validation: int = ranged(0, 0)
  bad_rows: str = chosen('error', ('error', 'skip'))
  max_row_bytes: int = ranged(1_000_000, 1)
  columns: tuple[str, ...] | None = None
  reward_weights: dict[str, float] = base.outcome_only()

  def num_prompts(self, split: str) -> int:
    """Rows before, or in, the held-out end; there is no test split."""
    base.check_split(split)
    total = len(self._rows())
    held_out = min(self.num_validation, total)
    return {
      'train': total - held_out,
      'validation': held_out,
      'test': 0,
    }[split]

  def example(self, split: str, index: int) -> Example:
    """The index-th row of the split."""
    base.check_index(self, split, index)
    first = 0 if split == 'train' else self.num_prompts('train')
    row = self._rows()[first + index]
    prompt: dict[str, Any] = {'prompt': row.question}
    template = self.template
    if row.turns:
      template = template or ChatTemplate()
      try:
        prompt = template.conversation(row.turns, row.arguments)
      except ValueError as error:
        raise ValueError(
          f'PromptResponse.template: {row.where}: {error}'
        ) from None
    elif template is not None:
      prompt = template.fields(row.question)
    meta = {base.COLUMNS: row.columns} if self.columns else {}
    return Example(**prompt, answer=row.solution, id=index, meta=meta)

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """The response."""
    if not example.messages or example.prefill:
      return (RecordedResponse(text=example.answer),)
    turn = {'role': 'assistant', 'content': example.answer}
    return (RecordedResponse(messages=(turn,)),)

  def target(self, example: Example) -> str:
    """The response."""
    return example.answer

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """1 if the text is the response, exactly."""
    return {base.OUTCOME: float(response == example.answer)}

  def _rows(self):
    return _load(
      self.path,
      self.prompt,
      self.response,
      self.bad_rows,
      self.max_row_bytes,
      self.columns or (),
    )


@functools.lru_cache(maxsize=8)
def _load(path, prompt, response, bad_rows, max_row_bytes, columns):
  def text(record, field, where):
    found = rows_lib.field(record, field, where)
    if not found:
      raise BadRowError(where, 'empty_' + field, f'{field!r} is empty')
    return found

  def reader(record, where):
    turns, arguments = rows_lib.conversation(record, prompt, where)
    asked = turns[-1]['content'] if turns else text(record, prompt, where)
    answer = text(record, response, where)
    return None, rows_lib.Row(asked, answer, answer, where, turns, arguments)

  return rows_lib.collect(
    path, 'train', reader, bad_rows, max_row_bytes, (prompt, response), columns
  )
