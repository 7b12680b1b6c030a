"""Sums by hand and by calls."""

import pytest

from rl_jax.tasks import Example
from rl_jax.worlds import Calculator

TASK = Calculator()
PROBLEM = Example(prompt='47+38=', answer='85', id=0)


@pytest.mark.parametrize(
  ('response', 'outcome', 'first'),
  [
    ('85', 1, -1),
    ('84', 0, -1),
    ('[47+38]', 1, 0),
    ('7+8=15;[47+38]', 1, 7),
    ('[1+1];7+8=15;[95-10]', 1, 0),  # the first call counts, used or not
    ('7[47+38]', 0, 1),  # a call, but no piece by itself
    ('[47+38];', 0, 0),
    ('[47+38', 0, -1),
    ('[47+38]85', 0, 0),
    ('085', 0, -1),
    ('', 0, -1),
  ],
)
def test_by_hand(response, outcome, first):
  found = TASK.reward(PROBLEM, response)
  cost = response.count(']')
  assert found == {'outcome': outcome, 'first_call': first, 'cost': cost}


def test_the_teacher():
  """Calls are right; two in five are by hand, and half of these are."""
  calls, hands, right = [], 0, 0
  for i in range(1000):
    example = TASK.example('train', i)
    target = TASK.target(example)
    assert set(target) <= set(TASK.alphabet)
    found = TASK.reward(example, target)
    hands += found['first_call'] < 0
    right += found['outcome'] * (found['first_call'] < 0)
    if found['first_call'] >= 0:
      assert found['outcome'] == 1
      calls.append(found['first_call'])
  assert 330 < hands < 470 and 0.4 < right / hands < 0.6
  assert len(set(calls)) > 3


def test_splits_share_no_sum():
  prompts = [
    {TASK.example(split, i).prompt for i in range(200)}
    for split in ('train', 'test')
  ]
  assert not prompts[0] & prompts[1]
