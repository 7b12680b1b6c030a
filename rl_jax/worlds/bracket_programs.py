"""Brackets to be closed, as programs that unit tests judge."""

import dataclasses

from rl_jax.checks import checked, ranged
from rl_jax.tasks import base, draws
from rl_jax.tasks.base import DrawnTask, Example, RecordedResponse

PAIRS = {'(': ')', '[': ']', '{': '}'}
OPEN, CLOSE = ''.join(PAIRS), ''.join(PAIRS.values())
# What CodeRL pays: no program, one that stops with an error, a wrong one.
NO_PROGRAM, FAILS, WRONG, RIGHT = -1.0, -0.6, -0.3, 1.0


@dataclasses.dataclass(frozen=True)
@checked
class BracketPrograms(DrawnTask):
  """Prompt '{([>', what is open; response '])}', or '[]])}', closes it.

  Two to `opened` brackets are open. Components: `outcome` 1 if all are closed
  in order; `tests` 1 then, -0.3 if some are left open, -0.6 if one is closed by
  a bracket of another kind or nothing is open, -1 if the response is empty or
  has other characters. A prompt has `num_recorded` programs: the shortest right
  one, with each bracket replaced at random with probability `bugs`.
  Source: this code, in place of APPS; rewards of CodeRL.
  """

  opened: int = ranged(5, 2, 9)
  bugs: float = ranged(0.2, 0.0, 1.0)
  num_recorded: int = ranged(4, 1)
  num_train: int = ranged(2000, 1)
  num_validation: int = ranged(200, 1)
  num_test: int = ranged(200, 1)
  seed: int = 0
  reward_weights: dict[str, float] = base.weights_field(tests=1.0)

  @property
  def alphabet(self) -> str:
    """The characters of prompts and responses."""
    return OPEN + CLOSE + '>'

  def example(self, split: str, index: int) -> Example:
    """The prompt of that index; equal ones occur within a split."""
    base.check_index(self, split, index)
    opened, _ = draws.first_of_split(
      split, 'brackets', (self.seed, split, index), self._drawn
    )
    answer = ''.join(PAIRS[x] for x in reversed(opened))
    return Example(prompt=f'{opened}>', answer=answer, id=index)

  def target(self, example: Example) -> str:
    """The shortest right program."""
    return example.answer

  def recorded(self, example: Example) -> tuple[RecordedResponse, ...]:
    """Programs with bugs, and what they earn."""
    stream = draws.Draws('bugs', self.seed, example.prompt, example.id)
    found = []
    for _ in range(self.num_recorded):
      program = ''.join(
        stream.choice(OPEN + CLOSE) if stream.uniform() < self.bugs else x
        for x in example.answer
      )
      rewards = self.reward(example, program)
      reward = base.combine(rewards, self.reward_weights)
      found.append(RecordedResponse(text=program, reward=reward))
    return tuple(found)

  def reward(self, example: Example, response: str) -> dict[str, float]:
    """Runs the tests."""
    found = graded(example.prompt[:-1], response)
    return {base.OUTCOME: float(found == RIGHT), 'tests': found}

  def _drawn(self, stream):
    """((brackets,), brackets): equal prompts are in one split."""
    count = 2 + stream.below(self.opened - 1)
    opened = ''.join(stream.choice(OPEN) for _ in range(count))
    return (opened,), opened


def graded(opened: str, program: str) -> float:
  """The reward of a program after open brackets."""
  if not program or set(program) - set(OPEN + CLOSE):
    return NO_PROGRAM
  stack = list(opened)
  for bracket in program:
    if bracket in PAIRS:
      stack.append(bracket)
    elif not stack or PAIRS[stack.pop()] != bracket:
      return FAILS
  return WRONG if stack else RIGHT
