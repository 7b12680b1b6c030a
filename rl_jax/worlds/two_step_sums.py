"""Sums of two operations, for a frozen solver that knows only one."""

import dataclasses

from rl_jax.checks import checked
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import Example, TaskTraits
from rl_jax.tasks.environments.base import (
  Ask,
  Environment,
  EnvironmentTask,
  Reply,
  seed_of,
)
from rl_jax.worlds import decomposition
from rl_jax.worlds.partner_lessons import Lessons

SOLVER = 'solver'
_BEFORE = '#'  # stands for the answer before
_MOST = 2  # sub-questions that are asked


@dataclasses.dataclass(frozen=True)
@checked
class TwoStepSums(EnvironmentTask, Lessons):
  """'3+4-5=4?' is answered by the two questions '3+4;#-5' of a decomposer.

  The prompt is a problem and what the partner 'solver' answers to it by itself.
  Each of the first two sub-questions, between ';', is asked with '#' replaced
  by the answer before it; the last answer counts. A question with other
  characters than digits and operators has the answer ''.
  Components: `outcome` 1 if the answer is right, `coverage`, `consistency`,
  `guidance`, `operations` (see decomposition); `alone` 1 if the solver is right
  without sub-questions, which weighs nothing by default.
  Source: DaSLaM, by a digest of its code; the problems are of this code.
  """

  reward_weights: dict[str, float] = base.weights_field(
    outcome=1.0, coverage=1.0, consistency=1.0, guidance=1.0, operations=1.0
  )
  traits = TaskTraits(global_random=False, asks=(SOLVER,))
  alphabet = '0123456789+-=;#?'
  partner_alphabet = '0123456789+-='

  def lesson(self, stream: draws.Draws) -> tuple[str, str]:
    """One operation of digits from 1."""
    a, b = _digit(stream), _digit(stream)
    if stream.below(2):
      return f'{a}+{b}=', str(a + b)
    return f'{max(a, b)}-{min(a, b)}=', str(abs(a - b))

  def problem(self, example: Example) -> tuple[str, tuple[str, str]]:
    """(problem, its two lines): no number below 0, the middle from 1 to 9."""
    return self.drawn(draws.Draws('two steps', seed_of(example)))

  def drawn(self, stream: draws.Draws) -> tuple[str, tuple[str, str]]:
    """A problem as of `problem`."""
    while True:
      a, b, c = (_digit(stream) for _ in range(3))
      first, second = ('+-'[stream.below(2)] for _ in range(2))
      middle = a + b if first == '+' else a - b
      end = middle + c if second == '+' else middle - c
      if 1 <= middle <= 9 and end >= 0:
        lines = f'{a}{first}{b}={middle}', f'{middle}{second}{c}={end}'
        return f'{a}{first}{b}{second}{c}', lines

  def make(self, example: Example) -> 'Decomposing':
    """An episode on the problem of the example."""
    return Decomposing(*self.problem(example))


@dataclasses.dataclass(frozen=True)
class Decompositions(Lessons):
  """Lessons of a decomposer: what DaSLaM's is trained on before RL.

  A prompt of TwoStepSums, with any number in place of what the solver says by
  itself, and its sub-questions.
  """

  task: TwoStepSums = TwoStepSums()

  @property
  def partner_alphabet(self) -> str:
    """The policy's alphabet."""
    return self.task.alphabet

  def lesson(self, stream: draws.Draws) -> tuple[str, str]:
    """'3+4-5=12?' and '3+4;#-5'."""
    question, _ = self.task.drawn(stream)
    return f'{question}={stream.below(19)}?', f'{question[:3]};#{question[3:]}'


def _digit(stream):
  return 1 + stream.below(9)


class Decomposing(Environment):
  """One episode: a turn, and three questions to the solver."""

  def __init__(self, question: str, gold: tuple[str, str]):
    self._question, self._gold = question, gold
    self._alone: str | None = None
    self._parts: list[str] | None = None  # as the policy wrote them
    self._asked: list[str] = []
    self._answers: list[str] = []

  def reset(self, seed: int) -> Reply:
    """The problem, after which the solver tries it by itself."""
    del seed  # that of the example
    text = f'{self._question}='
    return Reply(text, ask=Ask(SOLVER, text))

  def step(self, action: str) -> Reply:
    """The sub-questions, or an answer of the solver."""
    if self._alone is None:
      self._alone = action
      return Reply(f'{action}?')
    if self._parts is None:
      self._parts = action.split(';')[:_MOST]
    else:
      self._answers.append(action)
    while len(self._answers) < len(self._parts):
      before = self._answers[-1] if self._answers else ''
      part = self._parts[len(self._answers)].replace(_BEFORE, before)
      self._asked.append(part)
      if part and not set(part) - set('0123456789+-'):
        return Reply(ask=Ask(SOLVER, f'{part}='))
      self._answers.append('')
    return Reply(rewards=self._rewards(), done=True)

  def _rewards(self):
    assert self._parts is not None  # rewards follow the last answer
    answer = self._gold[-1].partition('=')[2]
    pairs = zip(self._asked, self._answers, strict=True)
    guided = [f'{part}={found}' for part, found in pairs]
    alone = f'{self._question}={self._alone}'
    return {
      base.OUTCOME: float(self._answers[-1] == answer),
      'coverage': decomposition.coverage(self._question, self._parts),
      'consistency': decomposition.consistency(self._asked, self._answers),
      'guidance': decomposition.guidance(self._gold, guided, alone),
      'operations': decomposition.operations(self._gold, guided),
      'alone': float(self._alone == answer),
    }
