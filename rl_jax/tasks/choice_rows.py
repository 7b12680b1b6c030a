"""Questions with options, one of which is right, from files of rows."""

from collections.abc import Mapping
import dataclasses
import functools
import json
import re
import string
from typing import Any

from rl_jax import checks
from rl_jax.checks import checked, chosen
from rl_jax.tasks import answers, base, draws
from rl_jax.tasks import rows as rows_lib
from rl_jax.tasks.base import Example, Task
from rl_jax.tasks.sources import BadRowError
from rl_jax.tasks.templates import ChatTemplate, PlainTemplate

TEXT, LETTER = 'text', 'letter'
_LETTERS = string.ascii_uppercase
# A letter by itself, or before the text that it stands for.
_NAMED = re.compile(r'\(([A-Za-z])\)|([A-Za-z])(?=$|[.):,])')
_MAX_ROW_BYTES = 1_000_000


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class ChoiceRows(Task):
  """Rows with a question and options; `gold` says which one is right.

  An evaluation with `options=True` compares the log-likelihoods of the options
  (`measures.option_scores`) and draws nothing. In all others a response names
  an option, as any other answer.

  sources, bad_rows, num_rows: as of QuestionAnswer.
  question: a template of fields of the row.
  options: the field that holds the list of options, or the names of several
    fields that hold one each.
  gold: the field with the right option: its place, counted from 0, or its
    letter. '': the first option is right, as of rows that hold the right answer
    and wrong ones.
  labels: the field with the list of names by which `gold` calls the options, as
    {"text": [...], "label": ["A", "B"]} has one; '': letters.
  shuffle: the options of a row come in an order that depends on seed, split and
    index only.
  listing: a line for each option below the question, as '{letter}. {option}';
    '': the prompt does not show them. heading: the text between the question
    and the first line.
  scored: what follows the prompt when options are compared: their 'text', or
    their 'letter', which needs a listing. between: what separates it from the
    prompt; its length does not count.
  extract: where the answer is in a response (a mode of `answers.extract`). It
    is right if it is the letter of the option, maybe in brackets or before the
    option, or else the option's text.

  Component: `outcome`.
  """

  sources: dict[str, str] = dataclasses.field(hash=False)
  question: str = '{question}'
  options: str | tuple[str, ...] = 'choices'
  gold: str = 'answer'
  labels: str = ''
  shuffle: bool = False
  seed: int = 0
  listing: str = ''
  heading: str = '\n'
  template: PlainTemplate | ChatTemplate = PlainTemplate()
  scored: str = chosen(TEXT, (TEXT, LETTER))
  between: str = ' '
  extract: str = chosen('answer_line', answers.MODES)
  bad_rows: str = chosen('error', ('error', 'skip'))
  num_rows: dict[str, int] = dataclasses.field(default_factory=dict, hash=False)
  reward_weights: dict[str, float] = base.outcome_only()

  def __post_init__(self):
    rows_lib.check_sources(type(self).__name__, self.sources)
    if unknown := sorted(set(self.num_rows) - set(self.sources)):
      raise ValueError(
        f'ChoiceRows.num_rows has {unknown}, but sources has '
        f'{sorted(self.sources)}'
      )
    if not rows_lib.fields_of(self.question):
      raise ValueError(
        f'ChoiceRows.question = {self.question!r} names no field of the '
        "rows; a field is in braces: '{question}'"
      )
    if not self.options or len(self.option_fields) == len(self.options) == 1:
      raise ValueError(
        f'ChoiceRows.options = {self.options!r}: expected the name of a '
        'field with a list, or two names of fields at least'
      )
    if self.listing and '{option}' not in self.listing:
      raise ValueError(
        f'ChoiceRows.listing = {self.listing!r} does not contain {{option}}'
      )
    if self.scored == LETTER and '{letter}' not in self.listing:
      raise ValueError(
        "ChoiceRows.scored = 'letter', but the prompt shows no letters: "
        "listing = '{letter}. {option}'"
      )

  @property
  def option_fields(self) -> tuple[str, ...]:
    """The names of the fields that hold options."""
    return (self.options,) if isinstance(self.options, str) else self.options

  def num_prompts(self, split: str) -> int:
    """The usable rows of the split's source; 0 without one."""
    base.check_split(split)
    return len(self._rows(split)) if split in self.sources else 0

  def example(self, split: str, index: int) -> Example:
    """The index-th usable row of the split."""
    base.check_index(self, split, index)
    row = self._rows(split)[index]
    texts, right = json.loads(row.solution), int(row.answer)
    if self.shuffle:
      order = _permutation(len(texts), self.seed, split, index)
      texts, right = [texts[i] for i in order], order.index(right)
    lines = [
      self.listing.replace('{letter}', letter).replace('{option}', text)
      for letter, text in zip(_LETTERS, texts, strict=False)
    ]
    listed = self.heading + '\n'.join(lines) if self.listing else ''
    return Example(
      **self.template.fields(row.question + listed),
      answer=texts[right],
      id=index,
      meta={
        base.PLACE: row.where,
        base.OPTION_FIELDS: self.option_fields,
        'question': row.question,
        'options': (tuple(texts), right),
      },
    )

  def scored_options(self, example: Example) -> tuple[base.Option, ...]:
    """The options of the example, in the order of its prompt."""
    texts, right = example.meta['options']
    shown = _LETTERS if self.scored == LETTER else texts
    return tuple(
      base.Option(text, self.between, place == right)
      for place, (text, _) in enumerate(zip(shown, texts, strict=False))
    )

  def target(self, example: Example) -> str:
    """The right option, as it is scored."""
    right = next(one for one in self.scored_options(example) if one.right)
    return right.before + right.text

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """1 for a response that names the right option."""
    texts, right = example.meta['options']
    found = answers.extract(example.prefill + response, self.extract)
    return {base.OUTCOME: float(_named(found, texts) == right)}

  def _rows(self, split):
    reading = _Reading(**checks.values(self, _FIELDS))
    found = _load(self.sources[split], split, reading)
    expected = self.num_rows.get(split, len(found))
    if len(found) != expected:
      raise ValueError(
        f'{self.sources[split]} has {len(found)} usable rows, but '
        f'ChoiceRows.num_rows[{split!r}] = {expected}'
      )
    return found


def _named(found: str | None, texts: tuple[str, ...]) -> int | None:
  """The place of the option that an answer names, or None."""
  if found is None:
    return None
  found = found.strip(' *$')
  match = _NAMED.match(found)
  if match is not None:
    place = _LETTERS.index((match[1] or match[2]).upper())
    return place if place < len(texts) else None
  return texts.index(found) if found in texts else None


def _permutation(count, seed, split, index):
  """The order of the options of a row: the old place of each new one."""
  stream, order = draws.Draws('options', seed, split, index), [*range(count)]
  for last in range(count - 1, 0, -1):
    other = stream.below(last + 1)
    order[last], order[other] = order[other], order[last]
  return order


@dataclasses.dataclass(frozen=True)
class _Reading:
  """The fields of a ChoiceRows on which its rows depend."""

  question: str
  options: str | tuple[str, ...]
  gold: str
  labels: str
  bad_rows: str


_FIELDS = tuple(field.name for field in dataclasses.fields(_Reading))


@functools.lru_cache(maxsize=32)
def _load(source, split, reading):
  """Reads a source once per process; the key is everything it depends on."""
  given = reading.options
  names = (given,) if isinstance(given, str) else given
  fields = (*names, reading.gold, reading.labels)
  fields = (*rows_lib.fields_of(reading.question), *filter(None, fields))

  def reader(record, where):
    question = rows_lib.fill(reading.question, record, where).strip()
    if not question:
      raise BadRowError(where, 'empty_question', 'the question is empty')
    texts = _texts(record, names, isinstance(given, str), where)
    right = _place(record, reading, len(texts), where) if reading.gold else 0
    row = rows_lib.Row(question, str(right), json.dumps(texts), where)
    return None, row

  return rows_lib.collect(
    source, split, reader, reading.bad_rows, _MAX_ROW_BYTES, fields
  )


def _texts(record, names, is_list, where) -> list[str]:
  """The options of a row. Raises: BadRowError naming the column."""
  if is_list:
    (name,) = names
    value = rows_lib.lookup(record, name, where)
    if not isinstance(value, (list, tuple)):
      kind = type(value).__name__
      raise BadRowError(
        where, 'wrong_type', f'field {name!r} is {kind}, no list of options'
      )
    columns = {f'{name}.{i}': one for i, one in enumerate(value)}
    if not 2 <= len(columns) <= len(_LETTERS):
      raise BadRowError(
        where,
        'options',
        f'field {name!r} has {len(columns)} options, expected from 2 to '
        f'{len(_LETTERS)}',
      )
  else:
    columns = {name: rows_lib.lookup(record, name, where) for name in names}
  texts = []
  for name, value in columns.items():
    texts.append(rows_lib.as_text(value, name, where).strip())
    if not texts[-1]:
      raise BadRowError(where, 'options', f'field {name!r} is an empty option')
  return texts


def _place(record: Mapping[str, Any], reading, count, where) -> int:
  """The place of the right option. Raises: BadRowError naming the column."""
  name = reading.gold
  value = rows_lib.field(record, name, where).strip()
  known: list[str] = [*_LETTERS[:count]]
  if reading.labels:
    labels = rows_lib.lookup(record, reading.labels, where)
    if not isinstance(labels, (list, tuple)) or len(labels) != count:
      raise BadRowError(
        where,
        'options',
        f'field {reading.labels!r} does not list {count} labels, one for each '
        'option',
      )
    known = [str(one) for one in labels]
  elif value.isascii() and value.lstrip('-').isdecimal():
    place = int(value)
    if not 0 <= place < count:
      raise BadRowError(
        where,
        'gold',
        f'field {name!r} = {value}: expected a place from 0 to {count - 1}, as '
        f'there are {count} options',
      )
    return place
  if value not in known:
    raise BadRowError(
      where, 'gold', f'field {name!r} = {value!r}: expected one of {known}'
    )
  return known.index(value)
