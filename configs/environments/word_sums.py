"""Sums in words with a calculator, as a data set of Aviary, and recorded ones.

  Aviary(dataset='configs.environments.word_sums:WordSums')

Imports Aviary when an environment is made.
"""

import dataclasses
import functools
import re
import string
from typing import Any, NamedTuple

from rl_jax.checks import checked, ranged
from rl_jax.tasks import Aviary, answers, draws
from rl_jax.tasks.base import Example, RecordedResponse
from rl_jax.tasks.environments.base import seed_of
from rl_jax.tasks.environments.calculator_tool import calculator as calculated

_SIGNS = {'plus': '+', 'minus': '-', 'times': '*'}
CALL = '<tool_call>{"name": "calculator", "arguments": {"expression": "'
SUBMIT = '<tool_call>{"name": "submit_answer", "arguments": {"answer": "'
CLOSE = '"}}</tool_call>'
# Words and marks of all that is said often; characters for the rest.
PIECES = (
  *(CALL, SUBMIT, CLOSE, '<tool_response>\n', '\n</tool_response>\n'),
  *('Invalid tool call: calculator', 'Not an expression.'),
  'No tool calls received. Please call one or more tools to proceed.\n',
  *('What is ', '?\n', *(f' {word} ' for word in _SIGNS)),
  *string.printable,
)


_SIGN, _RESULT = re.compile(r'[+*-]'), re.compile(r'-?\d+')


class Problem(NamedTuple):
  """A question, the expression that answers it, and its value as text."""

  question: str
  expression: str
  answer: str


class WordSums:
  """'What is 47 plus 38?', each problem once, in an order that never changes.

  digits: of both numbers. tools: 'both', or 'submit' without the calculator.
  Source: the GSM8K environment of "Aviary: training language agents on
  challenging scientific tasks", with sums, differences and products instead.
  """

  def __init__(self, digits: int = 2, tools: str = 'both'):
    if tools not in ('both', 'submit'):
      raise ValueError(f'WordSums: tools = {tools!r} is none of both, submit')
    if type(digits) is not int or not 1 <= digits <= 3:
      raise ValueError(f'WordSums: digits = {digits!r} is outside [1, 3]')
    self._low, self._tools = 10 ** (digits - 1), tools
    self._order = draws.Permutation(len(self), f'word sums {digits}')

  def __len__(self) -> int:
    return len(_SIGNS) * (9 * self._low) ** 2

  def problem(self, place: int) -> Problem:
    """The problem at a place, from 0."""
    rest, kind = divmod(self._order.forward(place), len(_SIGNS))
    a, b = (self._low + one for one in divmod(rest, 9 * self._low))
    word, sign = list(_SIGNS.items())[kind]
    question, expression = f'What is {a} {word} {b}?', f'{a}{sign}{b}'
    return Problem(question, expression, calculated(expression))

  def get_new_env_by_idx(self, idx: int):
    """A new environment of Aviary."""
    first = 1 if self._tools == 'submit' else 0
    return _environment()(self.problem(idx), first)


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class RecordedSums(Aviary):
  """Aviary with one recorded episode of every sum.

  A player does a share `by_hand` of the sums without the calculator, and
  half of those rightly; a share `careless` of its calls has a random sign.
  """

  by_hand: float = ranged(0.3, 0.0, 1.0)
  careless: float = ranged(0.5, 0.0, 1.0)

  def recorded(self, example: Example) -> tuple[RecordedResponse]:
    """The episode; of a wrong answer, too, the likelihood is learned."""
    place = example.meta['place']
    problem = WordSums(**self.options).problem(place)
    stream = draws.Draws('player of word sums', place)
    episode, turns = self.make(example), []
    episode.reset(seed_of(example))
    alone = self.options.get('tools') == 'submit'
    if stream.uniform() < self.by_hand or alone:
      off = 1 + stream.below(9) if stream.uniform() < 0.5 else 0
      answer = str(int(problem.answer) + off)
    else:
      expression = problem.expression
      if stream.uniform() < self.careless:
        expression = _SIGN.sub(stream.choice('+-*'), expression)
      call = f'{CALL}{expression}{CLOSE}'
      observed = episode.step(call).observation
      assert isinstance(observed, str)  # a game's is one for each player
      turns.append((call, observed))
      result = _RESULT.search(observed)
      assert result is not None
      answer = result[0]
    episode.close()
    turns.append((f'{SUBMIT}{answer}{CLOSE}', ''))
    return (RecordedResponse(turns=tuple(turns), turn_ends=True),)

  def target(self, example: Example) -> str:
    """Returns what the player says first."""
    return self.recorded(example)[0].turns[0][0]


@functools.cache
def _environment():
  """The class: what it derives from is imported now."""
  from aviary import core

  async def calculator(expression: str, state: Any) -> str:
    """Compute the value of an arithmetic expression.

    Args:
      expression: Integers with + - * / and parentheses.
      state: Of the episode.
    """
    try:
      # Models send numbers, too.
      # pyrefly: ignore [unnecessary-type-conversion]
      return calculated(str(expression))
    except ValueError:
      state.reward, state.done = -1.0, True
      return 'Not an expression.'

  async def submit_answer(answer: str, state: Any) -> str:
    """Submit the answer to the question, which ends the episode.

    Args:
      answer: A number.
      state: Of the episode.
    """
    # pyrefly: ignore [unnecessary-type-conversion]
    given = answers.parse_number(str(answer))
    right = given == answers.parse_number(state.problem.answer)
    state.reward, state.done = float(right), True
    return str(right)

  functions = calculator, submit_answer
  made = [core.Tool.from_function(one) for one in functions]  # 5 ms each

  class Asking(core.Environment):
    """Reward 1 for the right answer, -1 for no expression; both end."""

    def __init__(self, problem, first):
      self.problem, self.tools = problem, made[first:]

    async def reset(self):
      self.reward, self.done = 0.0, False
      return [core.Message(content=self.problem.question)], self.tools

    async def step(self, action):
      if not getattr(action, 'tool_calls', ()):
        return self.default_no_tool_calls_response
      self.reward = 0.0
      observed = await self.exec_tool_calls(
        action, state=self, handle_tool_exc=True
      )
      return observed, self.reward, self.done, False

  return Asking
