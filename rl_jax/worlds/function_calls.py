"""Requests that are answered by calls of functions with named parameters."""

from collections.abc import Sequence
import dataclasses
import functools
import re
import string
from typing import Any

from rl_jax.checks import checked, chosen, ranged
from rl_jax.tasks import base, call_reward, draws
from rl_jax.tasks.base import DrawnTask, Example

DIGITS = '01234'
PARAMETERS = 'uvwxyz'
_CALL = re.compile(r'([a-z])\(((?:[a-z]=\d(?:,[a-z]=\d)*)?)\)')


@dataclasses.dataclass(frozen=True)
@checked
class FunctionCalls(DrawnTask):
  """Prompt 'B21;A3=', response 'b(u=2,x=1)a(w=3)'.

  A request names a function by its capital letter and gives the values of its
  parameters in order; which parameters a function has (1 to 3 of them) is a
  property of the task, so it must be learned. Up to max_calls requests.
  Components:
    outcome: 1 for the calls of the answer, in order.
    format: 1 for a text of one call at least and nothing else.
    correct: ToolRL's score in [-3, 3], see call_reward.correct; -3 for a text
      without the form. granularity: 'intermediate' counts the parameters of a
      call as a whole, 'coarse' is 3 for the answer and -3 for any other text.
  Source: the reward of "ToolRL: Reward is All Tool Learning Needs"; requests
  are of this code, and without its tags. intermediate and coarse are
  reconstructed.
  """

  functions: int = ranged(4, 1, 26)
  max_calls: int = ranged(2, 1, 8)
  granularity: str = chosen('fine', call_reward.GRANULARITIES)
  num_train: int = ranged(20000, 1, 2**31 - 1)
  num_validation: int = ranged(500, 1, 2**31 - 1)
  num_test: int = ranged(1000, 1, 2**31 - 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.outcome_only()

  @property
  def alphabet(self) -> str:
    """The characters of prompts and responses."""
    names = string.ascii_lowercase[: self.functions]
    letters = set(names + names.upper() + PARAMETERS)
    return ''.join(sorted(letters)) + DIGITS + ';=(),'

  def signatures(self) -> dict[str, str]:
    """Function -> its parameters, in order."""
    return dict(_signatures(self.functions, self.seed))

  def example(self, split: str, index: int) -> Example:
    """The request of that index; those of the splits differ."""
    base.check_index(self, split, index)
    stream = draws.Draws('function calls', self.seed, split, index)
    signatures = _signatures(self.functions, self.seed)
    while True:
      requests, calls = [], []
      for _ in range(1 + stream.below(self.max_calls)):
        name, parameters = stream.choice(signatures)
        values = [stream.choice(DIGITS) for _ in parameters]
        requests.append(name.upper() + ''.join(values))
        pairs = zip(parameters, values, strict=True)
        calls.append(f'{name}({",".join(f"{p}={v}" for p, v in pairs)})')
      prompt = ';'.join(requests) + '='
      if draws.split_of(prompt) == split:
        return Example(prompt=prompt, answer=''.join(calls), id=index)

  def target(self, example: Example) -> str:
    """The answer, for supervised training."""
    return example.answer

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """The text before the end token is judged."""
    gold, found = calls_of(example.answer), calls_of(response)
    assert gold is not None  # `example` writes calls
    score = call_reward.SCORES[self.granularity]
    return {
      base.OUTCOME: float(response == example.answer),
      'format': float(found is not None),
      'correct': -3.0 if found is None else score(gold, found),
    }


def calls_of(text: str) -> list[dict[str, Any]] | None:
  """Calls as {'name', 'parameters'}; None without the form.

  A parameter that is given twice is not a form either.
  """
  found, place = [], 0
  while place < len(text):
    match = _CALL.match(text, place)
    if match is None:
      return None
    pairs = [pair.split('=') for pair in match[2].split(',') if pair]
    if len({key for key, _ in pairs}) < len(pairs):
      return None
    found.append({'name': match[1], 'parameters': dict(pairs)})
    place = match.end()
  return found or None


@functools.cache
def _signatures(functions: int, seed: int) -> Sequence[tuple[str, str]]:
  stream = draws.Draws('signatures', seed)
  found = []
  for name in string.ascii_lowercase[:functions]:
    left, own = list(PARAMETERS), []
    for _ in range(1 + stream.below(3)):
      own.append(left.pop(stream.below(len(left))))
    found.append((name, ''.join(own)))
  return tuple(found)
