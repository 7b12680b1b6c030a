"""Chains of operations modulo 10, thought through step by step or guessed."""

from collections.abc import Sequence
import dataclasses
import math
import re
from typing import Any

from rl_jax.checks import check_range, checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example, TaskTraits

OPERATIONS = '+-*'
_THOUGHT = r'<([0-9][+\-*][0-9]=[0-9](?:;[0-9][+\-*][0-9]=[0-9])*)>'
_RESPONSE = re.compile(rf'(?:{_THOUGHT})?([0-9])')
_CONTROLLED = re.compile(rf'(?:=|[+*]{_THOUGHT})([0-9])')
# How responses begin with `controls`, by mode: 0, 1, 2.
MODES = {'instant': '=', 'thought': '+', 'rechecked': '*'}
_BEGINS = '0123456789', '<'  # without `controls`, of modes 0 and 1
_UNKNOWN = 3  # mode or format of a response that has none of these


@dataclasses.dataclass(frozen=True)
@checked
class Chain(DrawnTask):
  """Prompt '3+4*2=', response '<3+4=7;7*2=4>4', or a guess: '4'.

  Operations apply from left to right, each modulo 10, to single digits. The
  whole response must be a digit, after any number of steps between < and >
  that `;` separates. Components:
    outcome: 1 if the digit is the value of the expression.
    format: 1 if the response has the form.
    steps: share of the expression's steps that are there, equal, at their
      place.
    mode: 0 is a guess, 1 a thought, 2 more steps than operations. Without the
      form it is read off the first character, a digit or <; else 3.
    guessed: 1 if the mode is 0.
    format_id: the mode of a response that has the form, 3 of all others, also
      of those that the limit has cut.
    cluster_id: the digit, or -1. num_answers: 1, or -1 without a digit.
    hit_rank: 1 if it is right. difficulty: operations over max_operations.
  All but `outcome` weigh nothing by default; `row_inputs` explains those
  after `steps`. What tokens are part of is said by `row_inputs_device`.

  With `controls` the first character of a response chooses its mode: '=4' is a
  guess, '+<3+4=7;7*2=4>4' a thought, '*<...>4' one that the teacher writes
  twice; the mode is then what it says, whatever follows, and `modes` has these
  beginnings.

  The difficulty is the number of operations. The hash of a problem decides its
  split, so no problem is in two of them; within a split short problems can
  occur under several indices.

  `target` is the whole solution. With guesses, slips or rechecks it is that of
  an imperfect teacher, for a warm start that leaves something to learn: a
  share `guesses` answers at once, rightly; in a thought a share `slips` of the
  steps has another result, with which the thought continues; a share `rechecks`
  writes all steps twice.
  """

  min_operations: int = ranged(4, 1)
  max_operations: int = ranged(8, 1, 20)
  hint_steps: int = ranged(2, 1)  # of `hinted`, fewer than operations
  guesses: float = ranged(0.0, 0.0, 1.0)
  slips: float = ranged(0.0, 0.0, 1.0)
  rechecks: float = ranged(0.0, 0.0, 1.0)
  hints: float = ranged(0.0, 0.0, 1.0)  # share of prompts that have a hint
  controls: bool = False
  num_train: int = ranged(4000, 1, 2**31 - 1)
  num_validation: int = ranged(1000, 1, 2**31 - 1)
  num_test: int = ranged(2000, 1, 2**31 - 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  alphabet = '0123456789+-*=;<>'

  def __post_init__(self):
    check_range(self, 'min_operations', 1, self.max_operations)

  @property
  def traits(self) -> TaskTraits:
    """Responses choose a mode by how they begin, if there are controls."""
    return TaskTraits(modes=dict(MODES) if self.controls else {})

  def example(self, split: str, index: int) -> Example:
    """Redraws until the problem belongs to the split (a few times)."""
    base.check_index(self, split, index)
    problem, stream = draws.first_of_split(
      split, 'chain', (self.seed, split, index), self._draw
    )
    example = Example(
      prompt=f'{problem}=', answer=str(value(problem)), id=index
    )
    return self.hinted(example) if stream.uniform() < self.hints else example

  def target(self, example: Example) -> str:
    """Returns what the teacher writes: the same for the same prompt."""
    problem = _problem(example)
    stream = draws.Draws('teacher', self.seed, problem)
    control = dict.fromkeys(MODES, '') | dict(self.traits.modes)
    if stream.uniform() < self.guesses:
      return control['instant'] + example.answer
    passes = 2 if stream.uniform() < self.rechecks else 1
    written, last = [], problem[0]
    for _ in range(passes):
      last = problem[0]
      for operation, digit in _pairs(problem):
        result = self._result(int(last), operation, int(digit), stream)
        written.append(f'{last}{operation}{digit}={result}')
        last = str(result)
    mode = 'thought' if passes == 1 else 'rechecked'
    return f'{control[mode]}<{";".join(written)}>{last}'

  def hinted(self, example: Example) -> Example:
    """Puts the solution's first steps before the prompt: '3+4=7;3+4*2='."""
    return self._behind_steps(example, self.hint_steps)

  def hinted_by(self, example: Example, share: float) -> Example:
    """Puts that share of the steps before the prompt: one or more, not all."""
    count = len(steps(_problem(example)))
    return self._behind_steps(example, math.ceil(share * count))

  def _behind_steps(self, example, count):
    found = steps(_problem(example))
    given = found[: max(1, min(count, len(found) - 1))]
    prompt = ''.join(f'{step};' for step in given) + f'{_problem(example)}='
    return dataclasses.replace(example, prompt=prompt)

  def with_examples(
    self, example: Example, solved: Sequence[tuple[Example, str]]
  ) -> Example:
    """Puts solved problems before the prompt: '1+2=<1+2=3>3;3+4*2='."""
    shown = ''.join(f'{e.prompt}{text};' for e, text in solved)
    return dataclasses.replace(example, prompt=shown + example.prompt)

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Prefill and the text before the end token are judged."""
    right = steps(_problem(example))
    response = example.prefill + response
    begun = self._begun(response[:1])
    found = {
      'cluster_id': -1.0,
      'difficulty': len(right) / self.max_operations,
      'format': 0.0,
      'format_id': float(_UNKNOWN),
      'guessed': float(begun == 0),
      'hit_rank': 0.0,
      'mode': float(begun),
      'num_answers': -1.0,
      base.OUTCOME: 0.0,
      'steps': 0.0,
    }
    pattern = _CONTROLLED if self.controls else _RESPONSE
    match = pattern.fullmatch(response)
    if match is None:
      return found
    thought, digit = match.groups()
    written = thought.split(';') if thought else []
    equal = sum(a == b for a, b in zip(right, written, strict=False))
    mode = found['mode']
    if not self.controls:
      mode += float(len(written) > len(right))
    outcome = float(digit == example.answer)
    return found | {
      'cluster_id': float(digit),
      'format': 1.0,
      'format_id': mode,
      'hit_rank': outcome,
      'mode': mode,
      'num_answers': 1.0,
      base.OUTCOME: outcome,
      'steps': equal / len(right),
    }

  def _begun(self, first):
    """The mode that the first character says, if there is one."""
    begins = MODES.values() if self.controls else _BEGINS
    found = (i for i, text in enumerate(begins) if first and first in text)
    return next(found, _UNKNOWN)

  def device_answers(self, examples: Sequence[Example], tokenizer: Any) -> Any:
    """(the digit, then a number for each step i32[B, A]; 1 + steps i32[B])."""
    from rl_jax.tasks import device_verifiers
    from rl_jax.worlds import chain_device

    del tokenizer
    if any(e.prefill for e in examples):
      raise ValueError('Chain: the device verifier reads no prefill')
    return device_verifiers.pad_rows(
      [
        [int(e.answer), *map(chain_device.step_number, steps(_problem(e)))]
        for e in examples
      ]
    )

  def reward_device(
    self, response_BT, length_B, answer_BA, answer_length_B, tokenizer
  ) -> dict[str, Any]:
    """The jittable twin of `reward`."""
    from rl_jax.worlds import chain_device

    return chain_device.rewards(
      response_BT,
      length_B,
      answer_BA,
      answer_length_B,
      tokenizer,
      self.max_operations,
      self.controls,
    )

  def row_inputs_device(self, response_BT, length_B, tokenizer) -> dict:
    """segment_start_BT: a step or the answer begins; think_mask_BT: < to >."""
    from rl_jax.worlds import chain_device

    return chain_device.row_inputs(response_BT, length_B, tokenizer)

  def _result(self, left, operation, right, stream):
    """Returns what the teacher writes as the result of a step."""
    result = apply(left, operation, right)
    if stream.uniform() < self.slips:
      result = (result + 1 + stream.below(9)) % 10
    return result

  def _draw(self, stream):
    """((problem,), problem), an expression as '3+4*2'."""
    span = self.max_operations - self.min_operations + 1
    problem = str(stream.below(10))
    for _ in range(self.min_operations + stream.below(span)):
      problem += f'{stream.choice(OPERATIONS)}{stream.below(10)}'
    return (problem,), problem


def steps(problem: str) -> list[str]:
  """The steps of '3+4*2': ['3+4=7', '7*2=4']."""
  found, last = [], int(problem[0])
  for operation, digit in _pairs(problem):
    result = apply(last, operation, int(digit))
    found.append(f'{last}{operation}{digit}={result}')
    last = result
  return found


def value(problem: str) -> int:
  """The digit that '3+4*2' equals, from left to right modulo 10: 4."""
  return int(steps(problem)[-1][-1])


def _problem(example):
  """The expression of a prompt, without a hint."""
  return example.prompt.rpartition(';')[2].removesuffix('=')


def _pairs(problem):
  return zip(problem[1::2], problem[2::2], strict=True)


def apply(left: int, operation: str, right: int) -> int:
  """One operation, modulo 10."""
  if operation == '+':
    return (left + right) % 10
  return (left - right if operation == '-' else left * right) % 10


_STEP = re.compile(r'[^;>]*[;>]|[^;>]+')


def split_steps(response: str) -> tuple[str, ...]:
  """'<3+4=7;7*2=4>4' -> ('<3+4=7;', '7*2=4>', '4'): ends stay."""
  return tuple(_STEP.findall(response))


def first_error(example: Example, written: tuple[str, ...]) -> int:
  """The first step that the solution does not have at its place; -1: none.

  The solution is that of Chain.target without slips, or, for a response of one
  step, the answer only.
  """
  right = steps(_problem(example))
  thought = [f'{step};' for step in right[:-1]] + [f'{right[-1]}>']
  thought[0] = f'<{thought[0]}'
  solution = [*thought, example.answer]
  if len(written) == 1:
    return -1 if written[0] == example.answer else 0
  for place, step in enumerate(written):
    if place >= len(solution) or step != solution[place]:
      return place
  return -1 if len(written) == len(solution) else len(written) - 1
