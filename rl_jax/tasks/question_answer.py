"""Question-answer sets from files of rows: JSONL, CSV, Parquet and others."""

import array
from collections.abc import Mapping, Sequence
import dataclasses
import functools
import math

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import (
  answers,
  base,
  draws,
  expressions,
  math_copies,
  math_forms,
)
from rl_jax.tasks import rows as rows_lib
from rl_jax.tasks.base import Example
from rl_jax.tasks.sources import BadRowError
from rl_jax.tasks.templates import ChatTemplate, PlainTemplate


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class QuestionAnswer:
  r"""Problems with a right answer; the response is searched for one.

  sources: split -> 'file.jsonl', 'file.csv', 'file.parquet', a folder of
    Parquet files or of `datasets.save_to_disk`, 'tfds:DIRECTORY' or
    'tfds:NAME'; the last three with '@SPLIT' if the data set calls the split
    otherwise.
  question, answer: templates of the row's fields: '{Body} {Question}'. Fields
    may have any name without braces: '{input-text}'.
  gold: where the right answer stands in the answer field (a mode of
    `answers.extract`): 'hash' for GSM8K, 'whole' for most.
  extract: where the answer stands in the response, prefill included.
  verifier: 'number' compares plain numbers, integers exactly and others
    within `tolerance`, which shrinks with right answers below 0.1: 1e-6 asks
    for six digits (`numerals.equal`); 'decimal' does so, but takes no quotient
    as '20/4', for problems whose answer is to be computed; 'math' accepts what
    `math_answers` finds equal, a form that is as far evaluated as the right
    answer, unless it is a copy of the question (`math_copies`); 'text' compares
    stripped text; 'expression' takes the first line of the response as an
    expression of integers (see `expressions`) whose exact value must be the
    right answer; `extract` is not used then.
  hold_out: how num_validation and num_test rows leave the train source for
    splits without a source of their own: the last rows of the file ('last':
    test at the very end, validation before it), or the last in the order of a
    hash of the question ('hash', independent of the order of rows).
  id_field: a field that must not repeat, or ''.
  bad_rows: 'error' stops at the first bad row, naming file and line; 'skip'
    counts them (see `skipped`). Bad: malformed JSON, invalid UTF-8, not an
    object, missing field, wrong type, empty question, a right answer that the
    verifier cannot parse, repeated id, more than max_row_bytes. ('math' takes
    5 ms at start-up for each right answer that is no plain number, and needs
    verifier.num_workers > 0.)

  clusters: adds the component `cluster_id`, which methods read that compare
    the answers of a group (empo, copo, seed_grpo): equal for answers of equal
    value (`normal_form`; of expressions the exact value), -1 without one. For
    data without right answers set answer='0', or any text that the verifier can
    read.

  Components: `outcome` and `format` (the response has exactly the form that
  `extract` asks for).
  """

  sources: dict[str, str] = dataclasses.field(hash=False)
  question: str = '{question}'
  answer: str = '{answer}'
  gold: str = chosen('whole', answers.MODES)
  template: PlainTemplate | ChatTemplate = PlainTemplate()
  extract: str = chosen('last_number', answers.MODES)
  verifier: str = chosen(
    'number', ('number', 'decimal', 'math', 'text', 'expression')
  )
  tolerance: float = ranged(1e-6, 0.0)
  hold_out: str = chosen('none', ('none', 'last', 'hash'))
  num_validation: int = ranged(0, 0)
  num_test: int = ranged(0, 0)
  id_field: str = ''
  bad_rows: str = chosen('error', ('error', 'skip'))
  max_row_bytes: int = ranged(1_000_000, 1)
  clusters: bool = False
  reward_weights: dict[str, float] = base.outcome_only()

  def __post_init__(self):
    _check_sources(self.sources)
    if not rows_lib.fields_of(self.question):
      raise ValueError(
        f'QuestionAnswer.question = {self.question!r} names no field of the '
        "rows; a field stands in braces: '{question}'"
      )
    for split in ('validation', 'test'):
      if (
        self.hold_out != 'none' and split in self.sources and self._size(split)
      ):
        raise ValueError(
          f'QuestionAnswer: {split} has its own source and also num_{split} = '
          f'{self._size(split)} rows held out of train'
        )

  @property
  def needs_workers(self) -> bool:
    """'math' runs a parser that has no time limit of its own."""
    return self.verifier == 'math'

  def num_prompts(self, split: str) -> int:
    """Usable rows; 0 if the split has neither a source nor held-out rows."""
    base.check_split(split)
    return len(self._rows(split))

  def example(self, split: str, index: int) -> Example:
    """The index-th usable row of the split."""
    base.check_index(self, split, index)
    row = self._rows(split)[index]
    return Example(
      **self.template.fields(row.question),
      answer=row.answer,
      id=index,
      meta={
        base.PLACE: row.where,
        'solution': row.solution,
        'question': row.question,
      },
    )

  def hinted(self, example: Example) -> Example:
    """With the first line of the solution as a hint below the question."""
    return self.hinted_by(example, 0.0)

  def hinted_by(self, example: Example, share: float) -> Example:
    """With that share of the solution's lines, at least one and never all."""
    lines = example.meta['solution'].strip().split('\n')
    count = min(math.ceil(share * len(lines)), len(lines) - 1)
    hint = '\n'.join(lines[: max(1, count)])
    question = f'{example.meta["question"]}\nHint: {hint}'
    return dataclasses.replace(example, **self.template.fields(question))

  def with_examples(
    self, example: Example, solved: Sequence[tuple[Example, str]]
  ) -> Example:
    """Behind solved questions: turns of a chat, or prompts with responses."""
    if isinstance(self.template, ChatTemplate):
      shots = tuple(
        (e.meta['question'], f'{e.prefill}{text}'.strip()) for e, text in solved
      )
      template = dataclasses.replace(
        self.template, shots=self.template.shots + shots
      )
      fields = template.fields(example.meta['question'])
      return dataclasses.replace(example, **fields)
    shown = ''.join(f'{e.prompt}{text.rstrip()}\n\n' for e, text in solved)
    return dataclasses.replace(
      example,
      prompt=shown + example.prompt,
      parts=('', shown, *example.parts),
    )

  def target(self, example: Example) -> str:
    """The solution as released (a space separates it from the prompt)."""
    return ' ' + example.meta['solution']

  def skipped(self, split: str) -> dict[str, int]:
    """Bad rows of the split's source, by kind."""
    source = split if split in self.sources else 'train'
    return dict(self._source(source).skipped) if source in self.sources else {}

  def prepare(self) -> None:
    """Imports the verifier's library once, before workers are forked."""
    if self.verifier == 'math':
      math_forms.math_verify()

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Judges prefill + response, the text before the end token."""
    text = example.prefill + response
    if self.verifier == 'expression':
      right = answers.parse_number(example.answer)
      return expressions.judged(text, right, self.clusters)
    found = answers.extract(text, self.extract)
    question = example.meta.get('question', '')
    solved = found is not None and self._equal(found, example.answer, question)
    components = {
      base.OUTCOME: float(solved),
      'format': float(answers.well_formed(text, self.extract)),
    }
    if self.clusters:
      same = example.answer if solved else found
      components['cluster_id'] = self._cluster(same)
    return components

  def _cluster(self, answer):
    if answer is None:
      return answers.cluster_id(None)
    if self.verifier == 'math' and self.extract == 'whole':
      answer = answers.last_formula(answer)
    return answers.cluster_id(answers.normal_form(answer, self.verifier))

  def _equal(self, found, gold, question):
    if self.verifier == 'text':
      return found == gold.strip()
    if self.verifier == 'decimal' and answers.is_quotient(found):
      return False
    if self.verifier in ('number', 'decimal'):
      return answers.numbers_equal(found, gold, self.tolerance)
    if self.extract == 'whole':
      found = answers.last_formula(found)
    right = answers.math_equal(found, gold, tolerance=self.tolerance)
    return right and not math_copies.copied(found, gold, question)

  def _size(self, split):
    return {'validation': self.num_validation, 'test': self.num_test}[split]

  def _source(self, split):
    return _load(
      self.sources[split],
      split,
      self.question,
      self.answer,
      self.gold,
      self.verifier,
      self.id_field,
      self.bad_rows,
      self.max_row_bytes,
    )

  def _rows(self, split):
    if split != 'train' and split in self.sources:
      return self._source(split)
    if 'train' not in self.sources:
      return ()
    loaded = self._source('train')
    if self.hold_out == 'none':
      return loaded if split == 'train' else ()
    parts = _partition(
      loaded, self.hold_out, self.num_validation, self.num_test
    )
    return parts[split]


def _check_sources(sources):
  """Raises ValueError unless they are texts by the names of splits."""
  if not isinstance(sources, Mapping):
    raise ValueError(
      f"QuestionAnswer.sources = {sources!r} is not {{'train': SOURCE, ...}}"
    )
  if not sources:
    raise ValueError('QuestionAnswer.sources is empty')
  for split, source in sources.items():
    base.check_split(split)
    if not isinstance(source, str) or not source:
      raise ValueError(
        f'QuestionAnswer.sources[{split!r}] = {source!r} is not the text of '
        'one file, one folder (several Parquet files are read together) or '
        'tfds:NAME'
      )


@functools.lru_cache(maxsize=32)
def _partition(loaded, hold_out, num_validation, num_test):
  """split -> rows; train gets the rows that are in no other split."""
  if num_validation + num_test >= len(loaded):
    raise ValueError(
      f'num_validation + num_test = {num_validation + num_test} leaves nothing '
      f'to train on: the source has {len(loaded)} usable rows'
    )
  order = range(len(loaded))
  if hold_out == 'hash':
    keys = [draws.stable_hash('row', row.question) for row in loaded]
    order = array.array('q', sorted(order, key=keys.__getitem__))
  end_train = len(order) - num_validation - num_test
  end_validation = len(order) - num_test
  return {
    'train': rows_lib.Part(loaded, order[:end_train]),
    'validation': rows_lib.Part(loaded, order[end_train:end_validation]),
    'test': rows_lib.Part(loaded, order[end_validation:]),
  }


@functools.lru_cache(maxsize=32)
def _load(
  source,
  split,
  question,
  answer,
  gold,
  verifier,
  id_field,
  bad_rows,
  max_row_bytes,
):
  """Reads a source once per process; the key is everything it depends on."""

  def reader(record, where):
    text = rows_lib.fill(question, record, where).strip()
    if not text:
      raise BadRowError(where, 'empty_question', 'the question is empty')
    solution = rows_lib.fill(answer, record, where).strip()
    right = answers.extract(solution, gold)
    if right is None or not _parses(right, verifier):
      raise BadRowError(
        where,
        'unparsable_answer',
        f'no right answer for verifier {verifier!r} in {solution[:80]!r}',
      )
    row_id = None
    if id_field:
      row_id = rows_lib.field(record, id_field, where)
    return row_id, rows_lib.Row(text, right, solution, where)

  fields = (
    *rows_lib.fields_of(question, answer),
    *([id_field] * bool(id_field)),
  )
  return rows_lib.collect(
    source, split, reader, bad_rows, max_row_bytes, fields
  )


def _parses(right, verifier):
  if verifier == 'text' or answers.parse_number(right) is not None:
    return True
  return verifier == 'math' and bool(math_forms.parse_math(right))
