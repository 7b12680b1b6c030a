"""Prompts with instructions that a program can check, as IFEval's."""

from collections.abc import Mapping
import dataclasses
import functools
import json
from typing import Any

from rl_jax.checks import checked, chosen
from rl_jax.tasks import base, instructions
from rl_jax.tasks import rows as rows_lib
from rl_jax.tasks.base import Example, Task, TaskTraits
from rl_jax.tasks.sources import BadRowError
from rl_jax.tasks.templates import ChatTemplate, PlainTemplate

STRICT, LOOSE = 'strict', 'loose'
_MAX_ROW_BYTES = 1_000_000


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class InstructionRows(Task):
  """Rows of IFEval: a prompt, names of instructions, arguments of each.

  sources, bad_rows, num_rows: as of QuestionAnswer.
  prompt, names, arguments: the fields of a row. Arguments are an object for
    each name; those that are null count as missing, so that all rows may have
    the same keys.
  outcome: 'strict' asks that the response follows all instructions; 'loose'
    asks that each instruction is followed by the response, or by it without its
    first line, its last line, asterisks, or several of them.
  detector: of languages: 'langdetect', the package that the released checks
    use, or 'scripts', which is weaker (`tasks.scripts`).

  Components: `outcome`; `strict` and `loose`, the accuracies of prompts;
  `strict_followed`, `loose_followed` and `instructions`, which are numbers.
  Evaluations also have the accuracies of instructions, over all prompts:
  reward/instruction_strict and reward/instruction_loose.
  Source: Zhou et al. 2023, arXiv:2311.07911.
  """

  sources: dict[str, str] = dataclasses.field(hash=False)
  prompt: str = 'prompt'
  names: str = 'instruction_id_list'
  arguments: str = 'kwargs'
  template: PlainTemplate | ChatTemplate = ChatTemplate()
  outcome: str = chosen(STRICT, (STRICT, LOOSE))
  detector: str = chosen(
    instructions.LANGDETECT, (instructions.LANGDETECT, instructions.SCRIPTS)
  )
  bad_rows: str = chosen('error', ('error', 'skip'))
  num_rows: dict[str, int] = dataclasses.field(default_factory=dict, hash=False)
  reward_weights: dict[str, float] = base.outcome_only()

  traits = TaskTraits(
    ratios={
      f'instruction_{form}': (f'{form}_followed', 'instructions')
      for form in (STRICT, LOOSE)
    }
  )

  def __post_init__(self):
    rows_lib.check_sources('InstructionRows', self.sources)
    if unknown := sorted(set(self.num_rows) - set(self.sources)):
      raise ValueError(
        f'InstructionRows.num_rows has {unknown}, but sources has '
        f'{sorted(self.sources)}'
      )

  def num_prompts(self, split: str) -> int:
    """The usable rows of the split's source; 0 without one.

    Raises: ImportError if the package of the detector is missing.
    """
    base.check_split(split)
    if split not in self.sources:
      return 0
    instructions.prepare(self.detector)
    return len(self._rows(split))

  def example(self, split: str, index: int) -> Example:
    """The index-th usable row of the split."""
    base.check_index(self, split, index)
    row = self._rows(split)[index]
    return Example(
      **self.template.fields(row.question),
      answer='',
      id=index,
      meta={
        base.PLACE: row.where,
        'question': row.question,
        'instructions': tuple(
          (name, arguments) for name, arguments in json.loads(row.solution)
        ),
      },
    )

  def prepare(self) -> None:
    """Imports the detector once, before workers are forked."""
    instructions.prepare(self.detector)

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Checks prefill + response."""
    asked = example.meta['instructions']
    text = example.prefill + response
    forms = instructions.loose_forms(text)
    strict = [self._follows(one, text) for one in asked]
    loose = [any(self._follows(one, form) for form in forms) for one in asked]
    by_form = {STRICT: strict, LOOSE: loose}
    return {
      base.OUTCOME: float(all(by_form[self.outcome])),
      **{form: float(all(found)) for form, found in by_form.items()},
      **{f'{form}_followed': float(sum(x)) for form, x in by_form.items()},
      'instructions': float(len(asked)),
    }

  def _follows(self, instruction, text):
    name, arguments = instruction
    return instructions.follows(name, text, arguments, self.detector)

  def _rows(self, split):
    fields = (self.prompt, self.names, self.arguments)
    found = _load(self.sources[split], split, fields, self.bad_rows)
    expected = self.num_rows.get(split, len(found))
    if len(found) != expected:
      raise ValueError(
        f'{self.sources[split]} has {len(found)} usable rows, but '
        f'InstructionRows.num_rows[{split!r}] = {expected}'
      )
    return found


@functools.lru_cache(maxsize=32)
def _load(source, split, fields, bad_rows):
  """Reads a source once per process; the key is everything it depends on."""
  prompt, names, arguments = fields

  def reader(record, where):
    text = rows_lib.field(record, prompt, where).strip()
    if not text:
      raise BadRowError(where, 'empty_question', f'field {prompt!r} is empty')
    asked = _instructions(record, names, arguments, where)
    return None, rows_lib.Row(text, '', json.dumps(asked), where)

  return rows_lib.collect(
    source, split, reader, bad_rows, _MAX_ROW_BYTES, fields
  )


def _instructions(
  record: Mapping[str, Any], names: str, arguments: str, where: str
) -> list[tuple[str, dict[str, Any]]]:
  """(name, arguments) of the instructions. Raises: BadRowError."""
  given = [rows_lib.lookup(record, name, where) for name in (names, arguments)]
  for name, value in zip((names, arguments), given, strict=True):
    if not isinstance(value, (list, tuple)) or not value:
      kind = type(value).__name__
      raise BadRowError(
        where, 'wrong_type', f'field {name!r} is {kind}, or empty, not a list'
      )
  if len(given[0]) != len(given[1]):
    raise BadRowError(
      where,
      'instructions',
      f'field {names!r} has {len(given[0])} instructions, but field '
      f'{arguments!r} has {len(given[1])} objects',
    )
  found = []
  for number, (name, values) in enumerate(zip(*given, strict=True)):
    if not isinstance(values, Mapping):
      kind = type(values).__name__
      raise BadRowError(
        where,
        'wrong_type',
        f"field '{arguments}.{number}' is {kind}, not an object",
      )
    values = {key: x for key, x in values.items() if x is not None}
    if problem := instructions.problem(str(name), values):
      raise BadRowError(
        where, 'instructions', f"field '{names}.{number}': {problem}"
      )
    found.append((str(name), values))
  return found
