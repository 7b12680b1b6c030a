"""Problems that ask for a Python function, judged by hidden tests."""

import dataclasses
import functools
import json
import math
import re
from typing import Any

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import base
from rl_jax.tasks import rows as rows_lib
from rl_jax.tasks.base import Example, Task, TaskTraits
from rl_jax.tasks.sources import BadRowError
from rl_jax.tasks.templates import ChatTemplate, PlainTemplate
from rl_jax.verification import sandbox

_BLOCK = re.compile(
  r'```([\w+-]*)[ \t]*\r?\n(.*?)(?:^[ \t]*```|\Z)', re.DOTALL | re.MULTILINE
)
_LANGUAGES = ('', 'py', 'python', 'python3')


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class PythonFunction(Task):
  """Rows of a JSONL file:

    {"prompt": "Write add(a, b), the sum.", "function": "add",
     "tests": [{"arguments": [1, 2], "expected": 3}], "solution": "def ..."}

  The response, or its last ``` block of Python, is run by
  `rl_jax.verification.sandbox`, which never sees what is expected. Values are
  compared here: equal JSON values; an expected integer exactly (3 or 3.0), an
  expected float within `tolerance` times its size, 0.0 within `tolerance`
  itself; True is not 1.
  `solution` is optional, for supervised training.

  limits: of all tests of a response together. verifier.timeout_seconds must
    exceed limits.wall_seconds by a second; use one verifier worker a core.
  require: layers of the sandbox that must work here, 'a|b' for one of them;
    what else is missing is a warning. () accepts any Linux, where generated
    code may read the hidden tests.

  Components: `outcome` is 1 if all tests pass, `passed` the share that does,
  `ran` is 1 if every test returned a value. The last num_validation rows are
  held out; a bad row is an error that names file and line, or skipped.
  """

  path: str
  template: PlainTemplate | ChatTemplate = PlainTemplate()
  tolerance: float = ranged(1e-6, 0.0)
  num_validation: int = ranged(0, 0)
  bad_rows: str = chosen('error', ('error', 'skip'))
  max_row_bytes: int = ranged(1_000_000, 1)
  limits: sandbox.Limits = sandbox.Limits()
  require: tuple[str, ...] = sandbox.SAFE
  reward_weights: dict[str, float] = base.outcome_only()

  @property
  def traits(self) -> TaskTraits:
    """A call takes the sandbox's limit, and its start and end."""
    return TaskTraits(reward_seconds=self.limits.wall_seconds + 1.0)

  def num_prompts(self, split: str) -> int:
    """Rows before, or in, the held-out end; there is no test split."""
    base.check_split(split)
    total = len(self._rows())
    held_out = min(self.num_validation, total)
    return {'train': total - held_out, 'validation': held_out, 'test': 0}[split]

  def example(self, split: str, index: int) -> Example:
    """The index-th row of the split; its answer is function and tests."""
    base.check_index(self, split, index)
    first = 0 if split == 'train' else self.num_prompts('train')
    row = self._rows()[first + index]
    return Example(
      **self.template.fields(row.question),
      answer=row.answer,
      id=index,
      meta={base.PLACE: row.where, 'solution': row.solution},
    )

  def target(self, example: Example) -> str:
    """The row's solution."""
    return example.meta['solution']

  def prepare(self) -> None:
    """Tries the sandbox once; RuntimeError if a required layer is missing."""
    report = sandbox.run_calls('', '', [], self.limits, [self.path])
    sandbox.check_required(
      'PythonFunction', report, self.limits.layers, self.require
    )

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Runs the response and compares what it returns."""
    wanted = json.loads(example.answer)
    tests = wanted['tests']
    report = sandbox.run_calls(
      extract_code(example.prefill + response),
      wanted['function'],
      [test['arguments'] for test in tests],
      self.limits,
      [self.path],
    )
    passed = sum(
      r.error is None and equal(r.value, test['expected'], self.tolerance)
      for r, test in zip(report.results, tests, strict=True)
    )
    return {
      base.OUTCOME: float(passed == len(tests)),
      'passed': passed / len(tests),
      'ran': float(all(r.error is None for r in report.results)),
    }

  def _rows(self):
    return _load(self.path, self.bad_rows, self.max_row_bytes)


def extract_code(text: str) -> str:
  """The last block between ``` lines (its end may be missing), or all.

  Blocks that name another language than Python are left out.
  """
  blocks = [
    code
    for language, code in _BLOCK.findall(text)
    if language.lower() in _LANGUAGES
  ]
  return blocks[-1] if blocks else text


def equal(result: Any, expected: Any, tolerance: float) -> bool:
  """JSON values: same type and value; floats are expected to a tolerance."""
  if isinstance(expected, bool) or isinstance(result, bool):
    return result is expected
  if isinstance(expected, int) and isinstance(result, int | float):
    return result == expected  # exact between int and float, too
  if isinstance(expected, int | float) and isinstance(result, int | float):
    least = 0.0 if expected else tolerance  # 0 is not 6.67e-11
    try:
      return math.isclose(result, expected, rel_tol=tolerance, abs_tol=least)
    except OverflowError:  # an int beyond the floats
      return False
  if type(result) is not type(expected):
    return False
  if isinstance(expected, list):
    return len(result) == len(expected) and all(
      equal(f, e, tolerance) for f, e in zip(result, expected, strict=True)
    )
  if isinstance(expected, dict):
    return result.keys() == expected.keys() and all(
      equal(result[name], expected[name], tolerance) for name in expected
    )
  return result == expected


@functools.lru_cache(maxsize=8)
def _load(path, bad_rows, max_row_bytes):
  def reader(record, where):
    prompt = rows_lib.field(record, 'prompt', where).strip()
    name = rows_lib.field(record, 'function', where).strip()
    if not prompt:
      raise BadRowError(where, 'empty_question', 'the prompt is empty')
    if not name.isidentifier():
      raise BadRowError(where, 'wrong_type', f'function {name!r} is not a name')
    tests = record.get('tests')
    good = isinstance(tests, list) and all(
      isinstance(test, dict)
      and isinstance(test.get('arguments'), list)
      and 'expected' in test
      for test in tests
    )
    if not good or not tests:
      raise BadRowError(
        where,
        'wrong_type',
        'tests is not a list of {"arguments": [...], "expected": ...}',
      )
    try:
      answer = json.dumps({'function': name, 'tests': tests})
    except (TypeError, ValueError, RecursionError) as error:  # of a table
      raise BadRowError(where, 'wrong_type', f'tests: {error}') from error
    solution = str(record.get('solution', ''))
    return None, rows_lib.Row(prompt, answer, solution, where)

  return rows_lib.collect(path, 'train', reader, bad_rows, max_row_bytes)
