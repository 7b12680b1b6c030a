"""The steps of responses to Chain, and which of them is wrong first."""

import re

from rl_jax.tasks.base import Example
from rl_jax.worlds import chain

_STEP = re.compile(r'[^;>]*[;>]|[^;>]+')


def split(response: str) -> tuple[str, ...]:
  """'<3+4=7;7*2=4>4' -> ('<3+4=7;', '7*2=4>', '4'): ends stay."""
  return tuple(_STEP.findall(response))


def first_error(example: Example, steps: tuple[str, ...]) -> int:
  """The first step that the solution does not have at its place; -1: none.

  The solution is that of Chain.target without slips, or, for a response of one
  step, the answer alone.
  """
  problem = example.prompt.rpartition(';')[2].removesuffix('=')
  right = chain.steps(problem)
  thought = [f'{step};' for step in right[:-1]] + [f'{right[-1]}>']
  thought[0] = f'<{thought[0]}'
  solution = [*thought, example.answer]
  if len(steps) == 1:
    return -1 if steps[0] == example.answer else 0
  for place, step in enumerate(steps):
    if place >= len(solution) or step != solution[place]:
      return place
  return -1 if len(steps) == len(solution) else len(steps) - 1
