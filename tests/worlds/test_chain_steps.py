"""Steps of chains: where they end, and which is wrong first."""

import pytest

from rl_jax.tasks.base import Example
from rl_jax.worlds import Chain, chain

EXAMPLE = Example(prompt='3+4*2=', answer='4', id=0)


@pytest.mark.parametrize(
  'response, first',
  [
    ('<3+4=7;7*2=4>4', -1),
    ('4', -1),
    ('5', 0),
    ('<3+4=8;8*2=6>6', 0),
    ('<3+4=7;7*2=5>5', 1),
    ('<3+4=7;7*2=4>5', 2),
    ('<3+4=7>7', 0),  # the thought ends too soon
    ('<3+4=7;7*2=4', 1),  # and is not ended
    ('<3+4=7;7*2=4>4;', 2),  # continues after the answer
  ],
)
def test_first_error_by_hand(response, first):
  steps = chain.split_steps(response)
  assert ''.join(steps) == response
  assert chain.first_error(EXAMPLE, steps) == first


def test_hints_are_no_part_of_the_problem():
  hinted = Example(prompt='3+4=7;3+4*2=', answer='4', id=0)
  assert chain.first_error(hinted, chain.split_steps('<3+4=7;7*2=4>4')) < 0


def test_solutions_have_no_error_and_slips_have():
  """The target is right throughout; with slips the first is found."""
  task = Chain()
  for index in range(20):
    example = task.example('test', index)
    steps = chain.split_steps(task.target(example))
    assert chain.first_error(example, steps) == -1
    worse = Chain(slips=1.0).target(example)
    assert chain.first_error(example, chain.split_steps(worse)) == 0
