"""Chain by a teacher with wrong beliefs: outcomes, its law, both verifiers."""

import itertools
import re

import numpy as np
import pytest

from rl_jax.tasks import Example
from rl_jax.worlds import BelievedChain, Chain, chain

PROBLEM = Example(prompt='3+4*2-9=', answer='5', id=0)
RIGHT = '<3+4=7;7*2=4;4-9=5>5'
FACTS = list(itertools.product(range(10), chain.OPERATIONS, range(10)))


@pytest.mark.parametrize(
  'response, outcome, of_chain',
  [
    (RIGHT, 1, 1),
    (RIGHT.replace('>', ';3+4=7>'), 1, 1),
    ('5', 0, 1),  # a guess proves nothing
    ('<3+4=7;7*2=5;4-9=5>5', 0, 1),  # nor does a step that is wrong
    ('<3+4=7;7*2=4>5', 0, 1),  # or missing
    ('<3+4=7;7*2=4;4-9=5>4', 0, 0),
    ('', 0, 0),
  ],
)
def test_all_steps_must_be_right(response, outcome, of_chain):
  """Everything but outcome and hit_rank is as Chain says."""
  found = BelievedChain().reward(PROBLEM, response)
  expected = Chain().reward(PROBLEM, response)
  assert expected['outcome'] == of_chain
  assert found == {**expected, 'outcome': outcome, 'hit_rank': outcome}


def test_beliefs_have_the_stated_law():
  """u^doubt has mean 1 / (1 + doubt) and median 2^-doubt; the others err."""
  task = BelievedChain(doubt=3.0)
  chances, wrongs = zip(*(task.belief(*fact) for fact in FACTS), strict=True)
  assert abs(np.mean(chances) - 0.25) < 4 * np.sqrt(9 / 112 / len(FACTS))
  assert abs(np.mean(np.array(chances) < 0.125) - 0.5) < 4 * 0.5 / 300**0.5
  assert all(
    chain.apply(*fact) != wrong < 10
    for fact, wrong in zip(FACTS, wrongs, strict=True)
  )


def test_the_teacher_writes_what_it_believes():
  """It writes only two results of a fact, the right one as often as was
  drawn.
  """
  task = BelievedChain(min_operations=2, max_operations=2)
  written, expected, variance = 0, 0.0, 0.0
  for i in range(1000):
    text = task.target(task.example('train', i))
    for a, op, b, c in re.findall('(.)(.)(.)=(.)', text):
      chance, wrong = task.belief(int(a), op, int(b))
      right = chain.value(a + op + b)
      assert int(c) in (right, wrong)
      written += int(c) == right
      expected, variance = expected + chance, variance + chance * (1 - chance)
  assert abs(written - expected) < 4 * np.sqrt(variance)


def test_without_doubt_it_is_chain():
  """The same problems and solutions."""
  sure, plain = BelievedChain(doubt=0.0), Chain()
  for i in range(20):
    example = plain.example('test', i)
    assert sure.example('test', i) == example
    assert sure.target(example) == plain.target(example)


def test_bad_fields_are_named():
  with pytest.raises(ValueError, match='BelievedChain.doubt = -1'):
    BelievedChain(doubt=-1.0)
  with pytest.raises(ValueError, match='BelievedChain.min_operations = 9'):
    BelievedChain(min_operations=9)
