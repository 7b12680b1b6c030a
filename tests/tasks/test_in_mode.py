"""Modes of chain: control characters, and tasks in a given mode."""

import pytest

from rl_jax.tasks import Countdown, Example, InMode
from rl_jax.worlds import Chain

PROBLEM = Example(prompt='3+4*2-9=', answer='5', id=0)
STEPS = '<3+4=7;7*2=4;4-9=5>5'


@pytest.mark.parametrize(
  'response, expected',
  [
    ('=5', dict(outcome=1, format=1, mode=0, format_id=0, cluster_id=5)),
    ('+' + STEPS, dict(outcome=1, steps=1, mode=1, format_id=1)),
    ('*' + STEPS, dict(outcome=1, steps=1, mode=2, format_id=2)),
    ('=' + STEPS, dict(outcome=0, format=0)),
    ('+5', dict(outcome=0, format=0)),
    ('5', dict(outcome=0, format=0)),
    (STEPS, dict(outcome=0, format=0)),
    ('-' + STEPS, dict(outcome=0, format=0)),
    ('==5', dict(outcome=0, format=0)),
  ],
)
def test_the_first_character_is_the_mode(response, expected):
  found = Chain(controls=True).reward(PROBLEM, response)
  assert {name: found[name] for name in expected} == expected


def test_a_given_beginning_is_judged_with_the_response():
  """The policy writes what is after it."""
  task = Chain(controls=True, num_train=10)
  for mode, (response, other) in {
    'instant': ('5', STEPS),
    'thought': (STEPS, '5'),
    'rechecked': (STEPS, '+' + STEPS),
  }.items():
    inside = InMode(task, mode)
    example = inside.example('train', 3)
    assert example.prefill == task.traits.modes[mode]
    assert example.prompt == task.example('train', 3).prompt
    given = Example(**{**vars(PROBLEM), 'prefill': example.prefill})
    assert inside.reward(given, response)['outcome'] == 1.0
    assert inside.reward(given, other)['format'] == 0.0


def test_wrong_modes_are_named():
  with pytest.raises(ValueError, match="'short': Chain has instant, thought"):
    InMode(Chain(controls=True), 'short')
  for task in (Chain(), Countdown()):
    with pytest.raises(ValueError, match='has no modes'):
      InMode(task, 'instant')
