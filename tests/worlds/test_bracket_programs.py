"""Brackets that are to be closed."""

import pytest

from rl_jax.worlds import BracketPrograms
from rl_jax.worlds.bracket_programs import graded


@pytest.mark.parametrize(
  ('program', 'expected'),
  [
    (')]', 1.0),
    ('{}[]))', -0.6),  # '(' is closed, then '[' by ')'
    ('()[{}])]', 1.0),
    (')', -0.3),
    (')](', -0.3),
    (')])', -0.6),
    (']', -0.6),
    ('', -1.0),
    (')>', -1.0),
  ],
)
def test_programs_by_hand(program, expected):
  """After '[(': right, an error, brackets left open, no program."""
  assert graded('[(', program) == expected


def test_targets_are_right():
  """And no other string of their brackets shorter than them."""
  task = BracketPrograms()
  for index in range(30):
    example = task.example('validation', index)
    target = task.target(example)
    assert set(example.prompt + target) <= set(task.alphabet)
    assert task.reward(example, target) == {'outcome': 1.0, 'tests': 1.0}
    assert task.reward(example, target[:-1])['outcome'] == 0.0
    assert 2 <= len(target) <= 5


def test_splits_differ():
  """No prompt is in two."""
  task = BracketPrograms()
  train, held_out = (
    {task.example(split, i).prompt for i in range(200)}
    for split in ('train', 'validation')
  )
  assert len(held_out) > 10 and not train & held_out


@pytest.mark.parametrize('bugs', [0.0, 0.3])
def test_recorded_programs_have_their_rewards(bugs):
  """A bracket stays with probability 1 - 5/6 of `bugs`."""
  task, same, total = BracketPrograms(bugs=bugs, num_recorded=8), 0, 0
  for index in range(60):
    example = task.example('train', index)
    for logged in task.recorded(example):
      assert logged.reward == task.reward(example, logged.text)['tests']
      pairs = zip(logged.text, example.answer, strict=True)
      same += sum(x == y for x, y in pairs)
      total += len(example.answer)
  assert same / total == pytest.approx(1 - bugs * 5 / 6, abs=0.03)
