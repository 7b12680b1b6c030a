"""Rules on digits that are applied in turn, with every step written."""

from collections.abc import Iterator
import dataclasses
import re

from rl_jax.checks import check_range, checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example
from rl_jax.worlds import families

RULES = 'crsdim'
LETTERS = f'0123456789{RULES} ;?>=#/'  # of prompts and responses
# How a judge is asked about the steps of a response; it answers as
# `experiments.papers.worlds.chain_rows` says.
QUESTION = '{prompt}{response}#'
_PROMPT = re.compile(rf'([{RULES}]+) (\d+)=')
_RESPONSE = re.compile(r'(\d+(?:;\d+)*)(\?\d+)?>(\d+)')
_PART = re.compile(r'[^;?>]*[;?>]|[^;?>]+')


@dataclasses.dataclass(frozen=True)
@checked
class FamilyChains(DrawnTask):
  """Prompt 'ri 314=', response '413;524>524': the rules of worlds.Families.

  The first rule makes the first step of the digits, every other one the next
  step of the last. Steps are separated by `;`. After the last one, `?` and the
  step once more is a check, '413;534?524>524', and the answer comes after `>`.
  Components:
    outcome: 1 if the answer is right, whatever is written before it.
    steps: share of the steps that are equal to those of the solution, at their
      place.
    consistent: 1 if the answer is what was written last before it.
    checked: 1 if the last step is checked.
    repeats: 1 if there are more steps than rules.
    written: number of steps.
  A response of another form has 0 in all of them. The hash of a prompt decides
  its split.

  `target` is what a teacher writes, the same for the same prompt: a share
  `slips` of the steps has one wrong digit, with which the chain continues; a
  share `checks` of the chains has a check, which is what the last rule makes
  of the step before; a share `contradictions` of the answers has one digit
  changed. A share `guesses` of the chains is its last step only, without a
  check: '524>524'.
  """

  min_rules: int = ranged(2, 1)
  max_rules: int = ranged(3, 1, 8)
  digits: int = ranged(3, 2, 9)
  slips: float = ranged(0.0, 0.0, 1.0)
  checks: float = ranged(0.0, 0.0, 1.0)
  contradictions: float = ranged(0.0, 0.0, 1.0)
  guesses: float = ranged(0.0, 0.0, 1.0)
  num_train: int = ranged(4000, 1)
  num_validation: int = ranged(300, 1)
  num_test: int = ranged(300, 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  # With the marks of QUESTION and of the answer to it.
  @property
  def alphabet(self) -> str | tuple[str, ...]:
    """The letters of prompts and responses."""
    return LETTERS

  def __post_init__(self):
    check_range(self, 'min_rules', 1, self.max_rules)

  def example(self, split: str, index: int) -> Example:
    """The prompt of that index."""
    base.check_index(self, split, index)
    (rules, digits), _ = draws.first_of_split(
      split, 'family chains', (self.seed, split, index), self._draw
    )
    prompt = f'{rules} {digits}='
    return Example(prompt=prompt, answer=solution(prompt)[-1], id=index)

  def _draw(self, stream):
    count = self.min_rules + stream.below(self.max_rules - self.min_rules + 1)
    rules = ''.join(stream.choice(RULES) for _ in range(count))
    digits = ''.join(str(stream.below(10)) for _ in range(self.digits))
    return (rules, digits), (rules, digits)

  def target(self, example: Example) -> str:
    """The chain of the teacher."""
    stream = draws.Draws('family chains teacher', self.seed, example.prompt)
    rules, last = _asked(example.prompt)
    steps, before = [], last
    for rule in rules:
      before = last
      last = families.answer(rule, before)
      if stream.uniform() < self.slips:
        last = slip(last, stream)
      steps.append(last)
    if self.guesses and stream.uniform() < self.guesses:
      return f'{last}>{last}'
    written = ';'.join(steps)
    if stream.uniform() < self.checks:
      last = families.answer(rules[-1], before)
      written += f'?{last}'
    if stream.uniform() < self.contradictions:
      last = slip(last, stream)
    return f'{written}>{last}'

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The components of the whole response."""
    found = dict.fromkeys(
      (base.OUTCOME, 'steps', 'consistent', 'checked', 'repeats', 'written'),
      0.0,
    )
    match = _RESPONSE.fullmatch(response)
    if match is None:
      return found
    chain, check, answer = match.groups()
    steps, right = chain.split(';'), solution(example.prompt)
    equal = sum(a == b for a, b in zip(steps, right, strict=False))
    last = check[1:] if check else steps[-1]
    return {
      base.OUTCOME: float(answer == right[-1]),
      'steps': equal / max(len(steps), len(right)),
      'consistent': float(answer == last),
      'checked': float(check is not None),
      'repeats': float(len(steps) > len(right)),
      'written': float(len(steps)),
    }


def solution(prompt: str) -> list[str]:
  """The right steps of a prompt: ['413', '524'] of 'ri 314='.

  Raises: ValueError for a text that is not a prompt.
  """
  rules, last = _asked(prompt)
  steps = []
  for rule in rules:
    last = families.answer(rule, last)
    steps.append(last)
  return steps


def parts(response: str) -> list[str]:
  """'413;534?524>524' -> ['413;', '534?', '524>', '524']; ends stay."""
  return _PART.findall(response)


def verdicts(prompt: str, response: str) -> list[float]:
  """1 for each of the `parts` that is right at its place, else 0.

  The check and the answer are right if they are the answer of the solution.
  """
  right, found = solution(prompt), []
  place, before = 0, ';'
  for text, mark in _marked(response):
    inside = before == ';' and place < len(right)
    expected = right[place] if inside else right[-1]
    known = inside or before in '?>'
    found.append(float(known and text == expected))
    place, before = place + 1, mark or before
  return found


def _marked(response: str) -> Iterator[tuple[str, str]]:
  """(text, the mark that ends it or '') of each part."""
  for part in parts(response):
    mark = part[-1] if part[-1] in ';?>' else ''
    yield part.removesuffix(mark) if mark else part, mark


def _asked(prompt: str) -> tuple[str, str]:
  """(rules, digits) of a prompt."""
  match = _PROMPT.fullmatch(prompt)
  if match is None:
    raise ValueError(f'{prompt!r:.80} is not a prompt of FamilyChains')
  return match[1], match[2]


def slip(digits: str, stream: draws.Draws) -> str:
  """The digits with another one at a place."""
  place = stream.below(len(digits))
  other = (int(digits[place]) + 1 + stream.below(9)) % 10
  return digits[:place] + str(other) + digits[place + 1 :]
