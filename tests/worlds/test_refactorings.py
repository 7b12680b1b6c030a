"""Parts of functions that become functions: the four checks."""

import pytest

from rl_jax.tasks.base import Example
from rl_jax.worlds import Refactorings

BEFORE = Example(prompt='Df(a):b=a+1;c=b*2;d=c-a;Rd\n', answer='', id=0)
RIGHT = 'Dg(a):b=a+1;c=b*2;Rc|Df(a):c=g(a);d=c-a;Rd'
DROPPED = 'Dg(a):b=a+1;Rb|Df(a):c=g(a);d=c-a;Rd'
NAMES = ('parses', 'runs', 'extracted', 'behaves', 'outcome')


@pytest.mark.parametrize(
  ('response', 'strict', 'called'),
  [
    ('Df(a', (0, 0, 0, 0, 0), 0),
    ('', (0, 0, 0, 0, 0), 0),
    ('x=1', (0, 0, 0, 0, 0), 0),  # not functions only
    ('Df(a):b=q+1;Rb', (1, 0, 0, 0, 0), 0),  # q is not there
    ('Df(a):b=a+1;c=b*2;d=c-a;Rd', (1, 1, 0, 1, 0), 0),  # nothing has changed
    (RIGHT, (1, 1, 1, 1, 1), 1),
    (DROPPED, (1, 1, 0, 0, 0), 1),
    ('Dg(a):Ra|Df(a):b=g(a);Rb', (1, 1, 0, 0, 0), 1),
    # A copy that is called, though nothing of f is left out.
    ('Dg(a):b=a+1;c=b*2;Rc|Df(a):b=a+1;c=g(a);d=c-a;Rd', (1, 1, 0, 1, 0), 1),
    # The new function is called with one argument too many.
    ('Dg(a):b=a+1;c=b*2;Rc|Df(a):c=g(a,a);d=c-a;Rd', (1, 0, 1, 0, 0), 1),
    # Calls without an end.
    ('Df(a):b=f(a);Rb', (1, 0, 0, 0, 0), 0),
    # Only the last of two functions of one name counts.
    (f'{RIGHT}|Df(a):Ra', (1, 1, 0, 0, 0), 0),
  ],
)
def test_checks_by_hand(response, strict, called):
  """All are evaluated; `called` is what a miner by names would say."""
  found = Refactorings().reward(BEFORE, response)
  assert tuple(found[name] for name in NAMES) == strict
  loose = Refactorings(detector='called').reward(BEFORE, response)
  assert loose['extracted'] == called
  assert loose['outcome'] == strict[-1]  # the truth is that of the strict check


def test_names_of_the_new_function_do_not_count():
  """Invariance: all new names may be others, if they are so everywhere."""
  renamed = 'Dh(k):j=k+1;i=j*2;Ri|Df(a):c=h(a);d=c-a;Rd'
  task = Refactorings()
  assert task.reward(BEFORE, renamed) == task.reward(BEFORE, RIGHT)
  mixed = 'Dh(k):j=k+1;i=k*2;Ri|Df(a):c=h(a);d=c-a;Rd'
  assert task.reward(BEFORE, mixed)['extracted'] == 0.0


def test_targets_are_right_and_slips_fail_by_behaviour_only():
  """Under the miner by names a slip has all three points of the paper."""
  task = Refactorings()
  slips = Refactorings(slips=1.0, detector='called')
  for index in range(60):
    example = task.example('train', index)
    assert task.reward(example, task.target(example)) == dict.fromkeys(
      NAMES, 1.0
    )
    assert set(example.prompt + task.target(example)) <= set(task.alphabet)
    found = slips.reward(example, slips.target(example))
    assert found['parses'] + found['runs'] + found['extracted'] == 3.0
    assert found['outcome'] == 0.0


def test_code_of_many_products_ends_soon():
  """Values are kept small, and calls are counted."""
  body = ';'.join('b=b*b' for _ in range(50))
  task = Refactorings()
  assert task.reward(BEFORE, f'Df(a):b=a;{body};Rb')['runs'] == 1.0
  nested = 'Dg(a):b=f(a);b=f(a);Rb|Df(a):b=g(a);b=g(a);Rb'
  assert task.reward(BEFORE, nested)['runs'] == 0.0


def test_bad_fields_are_named():
  with pytest.raises(ValueError, match='Refactorings.min_statements = 9'):
    Refactorings(min_statements=9)
