"""Countdown: reach a target from given numbers, each used exactly once."""

from collections.abc import Sequence
import dataclasses
from fractions import Fraction
import re
from typing import Any

from rl_jax.checks import check_range, checked, chosen, ranged
from rl_jax.tasks import answers, base, draws, expressions
from rl_jax.tasks.base import DrawnTask, Example
from rl_jax.tasks.templates import ChatTemplate, PlainTemplate

_FLAT = re.compile(r'[0-9](?:[+\-*][0-9])*')
_QUESTION = (
  'Using the numbers [{numbers}], write an expression that equals {target}. '
  'You can use +, -, *, / and parentheses, and must use each number exactly '
  'once. Give the final expression in <answer> </answer> tags, for example '
  '<answer> (1 + 2) / 3 </answer>.'
)


@dataclasses.dataclass(frozen=True)
@checked
class Countdown(DrawnTask):
  """Numbers and a reachable target; the response is an expression.

  grammar 'flat': numbers are digits 1..9, the prompt is '347>25=' and the whole
    response is digit (op digit)* with op one of + - * and the usual
    precedence: '3*7+4'. A jittable verifier exists.
  grammar 'full': numbers up to max_number, an English question, and the answer
    between the last <answer> tags: + - * / with parentheses, exact fractions.
    Neither signs, decimals, ** nor // are allowed.

  Components: `outcome`, and `format`, which is 1 if the response has the form
  asked for (an expression of the grammar, or the pair of tags). The default
  weights give 1 for solved, 0.1 for the form only, else 0.

  An example is a function of (seed, split, index). The hash of (sorted
  numbers, target) decides the split, so no problem is in two of them; within a
  split, problems of small number sets can occur under several indices.
  Source of the rules: Jiayi-Pan/TinyZero, verl/utils/reward_score/countdown.py,
  whose checker accepts '9**9**9' and reads '1.5' as the numbers 1 and 5.
  """

  grammar: str = chosen('flat', ('flat', 'full'))
  min_numbers: int = 3
  max_numbers: int = ranged(4, 2, 6)
  max_number: int = 9
  max_target: int = ranged(99, 10, 99_999)
  num_train: int = ranged(100_000, 1, 2**31 - 1)
  num_validation: int = ranged(1000, 1, 2**31 - 1)
  num_test: int = ranged(2000, 1, 2**31 - 1)
  seed: int = 0
  template: PlainTemplate | ChatTemplate = PlainTemplate('{question}')
  reward_weights: dict[str, float] = base.weights_field(outcome=0.9, format=0.1)

  alphabet = '0123456789+-*>='  # of the flat grammar

  def __post_init__(self):
    check_range(self, 'min_numbers', 2, self.max_numbers)
    check_range(self, 'max_number', 2, 9 if self.grammar == 'flat' else 9999)

  def example(self, split: str, index: int) -> Example:
    """Redraws until the problem belongs to the split (a few times)."""
    base.check_index(self, split, index)
    (numbers, target, solution), _ = draws.first_of_split(
      split, 'countdown', (self.seed, split, index), self._draw
    )
    if self.grammar == 'flat':
      question = ''.join(map(str, numbers)) + f'>{target}='
    else:
      question = _QUESTION.format(
        numbers=', '.join(map(str, numbers)), target=target
      )
    return Example(
      **self.template.fields(question),
      answer=solution,
      id=index,
      meta={'numbers': list(numbers), 'target': target},
    )

  def target(self, example: Example) -> str:
    """One solution, in the form that the response must have."""
    if self.grammar == 'flat':
      return example.answer
    return f'<answer> {example.answer} </answer>'

  def hinted(self, example: Example) -> Example:
    """Puts a solution's first operation before the prompt: '3*>347>25='."""
    self._require_flat()
    prompt = f'{example.answer[:2]}>{example.prompt}'
    return dataclasses.replace(example, prompt=prompt, parts=())

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """`outcome` and `format`; the text before the end token is judged."""
    if self.grammar == 'flat':
      text = response if _FLAT.fullmatch(response) else None
    else:
      text = answers.between_tags(example.prefill + response)
    if text is None:
      return {base.OUTCOME: 0.0, 'format': 0.0}
    numbers, target = example.meta['numbers'], example.meta['target']
    solved = _solves(text, numbers, target)
    return {base.OUTCOME: float(solved), 'format': 1.0}

  def device_answers(self, examples: Sequence[Example], tokenizer: Any) -> Any:
    """(target, then the numbers i32[B, A]; 1 + number of numbers i32[B])."""
    from rl_jax.tasks import device_verifiers

    self._require_flat()
    return device_verifiers.pad_rows(
      [[e.meta['target'], *e.meta['numbers']] for e in examples]
    )

  def reward_device(
    self, response_BT, length_B, answer_BA, answer_length_B, tokenizer
  ) -> dict[str, Any]:
    """The jittable twin of `reward` for the flat grammar."""
    from rl_jax.tasks import device_verifiers

    self._require_flat()
    kept_BT = device_verifiers.text_mask(response_BT, length_B, tokenizer)
    solved_B, legal_B = device_verifiers.flat_expression(
      response_BT, kept_BT, answer_BA, answer_length_B, tokenizer
    )
    return {base.OUTCOME: solved_B, 'format': legal_B}

  def _require_flat(self):
    if self.grammar != 'flat':
      raise ValueError(
        "Countdown: only grammar='flat' has a device verifier and hints"
      )

  def _draw(self, stream):
    """(identity, (numbers, target, solution)); None: target out of range."""
    count = self.min_numbers + stream.below(
      self.max_numbers - self.min_numbers + 1
    )
    numbers = [1 + stream.below(self.max_number) for _ in range(count)]
    if self.grammar == 'flat':
      parts = [str(numbers[0])]
      for number in numbers[1:]:
        parts += [stream.choice('+-*'), str(number)]
      solution = ''.join(parts)
      value = expressions.evaluate(solution)[0]
    else:
      value, solution = _random_tree(numbers, stream)
    if value is None or value.denominator != 1:
      return None
    if not 1 <= value <= self.max_target:
      return None
    shown = list(numbers)
    for i in range(len(shown) - 1, 0, -1):  # the solution has another order
      j = stream.below(i + 1)
      shown[i], shown[j] = shown[j], shown[i]
    target = int(value)
    return (sorted(numbers), target), (shown, target, solution)


def _solves(text: str, numbers: Sequence[int], target: int) -> bool:
  try:
    value, used = expressions.evaluate(text)
  except expressions.ExpressionError:
    return False
  return sorted(used) == sorted(numbers) and value == target


def _random_tree(numbers, stream):
  """Combines two random entries until one is left; None on division by 0."""
  entries = [(Fraction(number), str(number)) for number in numbers]
  while len(entries) > 1:
    a, a_text = entries.pop(stream.below(len(entries)))
    b, b_text = entries.pop(stream.below(len(entries)))
    op = stream.choice('+-*/')
    if op == '/' and b == 0:
      return None, ''
    value = {
      '+': lambda a, b: a + b,
      '-': lambda a, b: a - b,
      '*': lambda a, b: a * b,
      '/': lambda a, b: a / b,
    }[op](a, b)
    text = f'{a_text} {op} {b_text}'
    entries.append((value, f'({text})' if entries else text))
  return entries[0]
