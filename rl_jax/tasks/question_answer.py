"""Question-answer sets from files of rows: JSONL, CSV, Parquet and others."""

import array
from collections.abc import Sequence
import dataclasses
import functools
import math
from typing import Any

from rl_jax import checks
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
from rl_jax.tasks.base import Example, Task, TaskTraits
from rl_jax.tasks.sources import BadRowError
from rl_jax.tasks.templates import ChatTemplate, PlainTemplate

# In Example.meta: a conversation of the data with what it says to the model's
# template, and all right answers where there are several.
_TURNS, _ANSWERS = 'turns', 'answers'


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class QuestionAnswer(Task):
  r"""Problems with a right answer; the response is searched for one.

  sources: split -> 'file.jsonl', 'file.csv', 'file.parquet', a folder of
    Parquet files or of `datasets.save_to_disk`, 'tfds:DIRECTORY' or
    'tfds:NAME'; the last three with '@SPLIT' if the data set calls the split
    otherwise.
  question, answer: templates of the row's fields: '{Body} {Question}'. Fields
    may have any name without braces: '{input-text}'; '{extra_info.question}' is
    a field of a field, '{choices.0}' the first value of a list. If `question`
    is one field, it may hold a conversation, a list of turns (tasks.messages)
    whose last one is the question; `template` must then be a ChatTemplate, and
    `tools` and `chat_template_kwargs` of the row are variables of the model's
    template. If `answer` is one field, it may hold a list: a response is right
    if it meets one of its values. answer='': the rows have no right answers,
    and the outcome is 0 unless a reward function says another.
  gold: where the right answer is in the answer field (a mode of
    `answers.extract`): 'hash' for GSM8K, 'whole' for most.
  extract: where the answer is in the response, prefill included.
  last_characters: the mark of the answer ('####', 'Answer:', the box or tag)
    must begin in so many last characters of the response; for modes with a mark
    (`answers.MARKED`). None: anywhere.
  verifier: 'number' compares plain numbers, integers exactly and others
    within `tolerance`, which shrinks with right answers below 0.1: 1e-6 asks
    for six digits (`numerals.equal`); 'decimal' does so, but takes no quotient
    as '20/4', for problems whose answer is to be computed; 'math' accepts what
    `math_answers` finds equal, a form that is as far evaluated as the right
    answer, unless it is a copy of the question (`math_copies`); 'text' compares
    stripped text; 'squad' compares it without case, punctuation and articles
    (`answers.squad_form`); 'expression' takes the first line of the response as
    an expression of integers (see `expressions`) whose exact value must be the
    right answer; `extract` is not used then.
  hold_out: how num_validation and num_test rows leave the train source for
    splits without their own source: the last rows of the file ('last':
    test at the very end, validation before it), or the last in the order of a
    hash of the question ('hash', independent of the order of rows).
  num_rows: split -> how many usable rows its source must have, so that a
    changed file is an error.
  id_field: a field that must not repeat, or ''.
  bad_rows: 'error' stops at the first bad row, naming file and line; 'skip'
    counts them (see `skipped`). Bad: malformed JSON, invalid UTF-8, not an
    object, missing field, wrong type, empty question, a right answer that the
    verifier cannot parse, repeated id, more than max_row_bytes. ('math' takes
    5 ms at start-up for each right answer that is not a plain number, and needs
    verifier.num_workers > 0.)

  clusters: adds the component `cluster_id`, which methods read that compare
    the answers of a group (empo, copo, seed_grpo): equal for answers of equal
    value (`normal_form`; of expressions the exact value), -1 without one. Data
    need no right answers for it.
  columns: fields of the row that Example.meta['columns'] has, for rewards that
    read them; ('*',) for all. null: all for the functions of RewardFunctions,
    and else none.

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
    'number', ('number', 'decimal', 'math', 'text', 'squad', 'expression')
  )
  last_characters: int | None = ranged(None, 1)
  tolerance: float = ranged(1e-6, 0.0)
  hold_out: str = chosen('none', ('none', 'last', 'hash'))
  num_validation: int = ranged(0, 0)
  num_test: int = ranged(0, 0)
  id_field: str = ''
  bad_rows: str = chosen('error', ('error', 'skip'))
  max_row_bytes: int = ranged(1_000_000, 1)
  clusters: bool = False
  columns: tuple[str, ...] | None = None
  reward_weights: dict[str, float] = base.outcome_only()
  num_rows: dict[str, int] = dataclasses.field(default_factory=dict, hash=False)

  def __post_init__(self):
    rows_lib.check_sources('QuestionAnswer', self.sources)
    if unknown := sorted(set(self.num_rows) - set(self.sources)):
      raise ValueError(
        f'QuestionAnswer.num_rows has {unknown}, but sources has '
        f'{sorted(self.sources)}'
      )
    if not self.answer and self.verifier == 'expression':
      raise ValueError(
        "QuestionAnswer.answer = '', but verifier = 'expression' compares with "
        'a number'
      )
    if self.last_characters and self.extract not in answers.MARKED:
      raise ValueError(
        f'QuestionAnswer.last_characters = {self.last_characters} with extract '
        f'= {self.extract!r}, which has no mark: {", ".join(answers.MARKED)}'
      )
    if not rows_lib.fields_of(self.question):
      raise ValueError(
        f'QuestionAnswer.question = {self.question!r} names no field of the '
        "rows; a field is in braces: '{question}'"
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
  def traits(self) -> TaskTraits:
    """'math' runs a parser that has no time limit."""
    return TaskTraits(
      needs_workers=self.verifier == 'math', clusters=self.clusters
    )

  def num_prompts(self, split: str) -> int:
    """Usable rows; 0 if the split has neither a source nor held-out rows."""
    base.check_split(split)
    return len(self._rows(split))

  def example(self, split: str, index: int) -> Example:
    """The index-th usable row of the split."""
    base.check_index(self, split, index)
    row = self._rows(split)[index]
    meta = {
      base.PLACE: row.where,
      'solution': row.solution,
      'question': row.question,
    }
    if row.turns:
      meta[_TURNS] = (row.turns, row.arguments)
    if row.answers:
      meta[_ANSWERS] = row.answers
    if self.columns:
      meta[base.COLUMNS] = row.columns
    return Example(
      **self._prompt(row.question, meta), answer=row.answer, id=index, meta=meta
    )

  def _prompt(self, question, meta) -> dict[str, Any]:
    """The prompt fields of a row with this question."""
    if _TURNS not in meta:
      return self.template.fields(question)
    (*turns, last), arguments = meta[_TURNS]
    try:
      return self.template.conversation(
        (*turns, {**last, 'content': question}), arguments
      )
    except ValueError as error:
      raise ValueError(
        f'QuestionAnswer.template: {meta[base.PLACE]}: {error}'
      ) from None

  def hinted(self, example: Example) -> Example:
    """Adds the first line of the solution as a hint below the question."""
    return self.hinted_by(example, 0.0)

  def hinted_by(self, example: Example, share: float) -> Example:
    """Adds that share of the solution's lines, at least one and never all."""
    lines = example.meta['solution'].strip().split('\n')
    count = min(math.ceil(share * len(lines)), len(lines) - 1)
    hint = '\n'.join(lines[: max(1, count)])
    question = f'{example.meta["question"]}\nHint: {hint}'
    return dataclasses.replace(example, **self._prompt(question, example.meta))

  def with_examples(
    self, example: Example, solved: Sequence[tuple[Example, str]]
  ) -> Example:
    """Adds solved questions: turns of a chat, or prompts with responses."""
    if isinstance(self.template, ChatTemplate):
      shots = tuple(
        (e.meta['question'], f'{e.prefill}{text}'.strip()) for e, text in solved
      )
      template = dataclasses.replace(
        self.template, shots=self.template.shots + shots
      )
      changed = dataclasses.replace(self, template=template)
      fields = changed._prompt(example.meta['question'], example.meta)
      return dataclasses.replace(example, **fields)
    shown = ''.join(f'{e.prompt}{text.rstrip()}\n\n' for e, text in solved)
    return dataclasses.replace(
      example,
      prompt=shown + example.prompt,
      parts=('', shown, *example.parts),
    )

  def target(self, example: Example) -> str:
    """The solution as released (a space separates it from the prompt)."""
    if not self.answer:
      raise ValueError("QuestionAnswer.answer = '': the rows have no targets")
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
    found = answers.extract(text, self.extract, self.last_characters)
    question = example.meta.get('question', '')
    rights = example.meta.get(_ANSWERS, (example.answer,))
    solved = (
      bool(self.answer)
      and found is not None
      and any(self._equal(found, right, question) for right in rights)
    )
    components = {
      base.OUTCOME: float(solved),
      'format': float(
        answers.well_formed(text, self.extract, self.last_characters)
      ),
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
    if self.verifier == 'squad':
      return answers.squad_form(found) == answers.squad_form(gold)
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
    names = (field.name for field in dataclasses.fields(_Reading))
    reading = _Reading(**checks.values(self, names))
    found = _load(self.sources[split], split, reading)
    expected = self.num_rows.get(split, len(found))
    if len(found) != expected:
      raise ValueError(
        f'{self.sources[split]} has {len(found)} usable rows, but '
        f'QuestionAnswer.num_rows[{split!r}] = {expected}'
      )
    return found

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


@dataclasses.dataclass(frozen=True)
class _Reading:
  """The fields of a QuestionAnswer on which its rows depend."""

  question: str
  answer: str
  gold: str
  verifier: str
  id_field: str
  bad_rows: str
  max_row_bytes: int
  columns: tuple[str, ...] | None


@functools.lru_cache(maxsize=32)
def _load(source, split, reading):
  """Reads a source once per process; the key is everything it depends on."""
  id_field = reading.id_field

  def reader(record, where):
    row = _read_row(record, where, reading)
    row_id = None
    if id_field:
      row_id = rows_lib.field(record, id_field, where)
    return row_id, row

  return rows_lib.collect(
    source,
    split,
    reader,
    reading.bad_rows,
    reading.max_row_bytes,
    (
      *rows_lib.fields_of(reading.question, reading.answer),
      *([id_field] * bool(id_field)),
    ),
    reading.columns or (),
  )


def _read_row(record, where, reading):
  """The row of a record. Raises: BadRowError."""
  turns, arguments = (), {}
  if name := rows_lib.only_field(reading.question):
    turns, arguments = rows_lib.conversation(record, name, where)
  if turns:
    text = turns[-1]['content']
  else:
    text = rows_lib.fill(reading.question, record, where).strip()
  if not text.strip():
    raise BadRowError(where, 'empty_question', 'the question is empty')
  solutions = _solutions(record, where, reading)
  found: list[str] = []
  for solution in solutions:
    right = answers.extract(solution, reading.gold)
    if right is None or not _parses(right, reading.verifier):
      raise BadRowError(
        where,
        'unparsable_answer',
        f'no right answer for verifier {reading.verifier!r} in '
        f'{solution[:80]!r}',
      )
    found.append(right)
  right, solution = (found[0], solutions[0]) if found else ('', '')
  several = tuple(found) if len(found) > 1 else ()
  return rows_lib.Row(text, right, solution, where, turns, arguments, several)


def _solutions(record, where, reading):
  """Texts of the right answers; none without a template."""
  if not reading.answer:
    return []
  name = rows_lib.only_field(reading.answer)
  value = None if name is None else rows_lib.lookup(record, name, where)
  if reading.verifier == 'expression' or not isinstance(value, (list, tuple)):
    return [rows_lib.fill(reading.answer, record, where).strip()]
  if not value:
    raise BadRowError(
      where, 'unparsable_answer', f'field {name!r} is a list without an answer'
    )
  return [
    rows_lib.as_text(one, f'{name}.{number}', where).strip()
    for number, one in enumerate(value)
  ]


def _parses(right, verifier):
  if verifier in ('text', 'squad') or answers.parse_number(right) is not None:
    return True
  return verifier == 'math' and bool(math_forms.parse_math(right))
