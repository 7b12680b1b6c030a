"""Rules on digits in turn."""

import pytest

from rl_jax.tasks.base import Example
from rl_jax.worlds import FamilyChains, family_chains

EXAMPLE = Example(prompt='ri 314=', answer='524', id=0)


def test_solution_by_hand():
  """r turns 314, i adds 1 to each digit; m and d after s."""
  assert family_chains.solution('ri 314=') == ['413', '524']
  assert family_chains.solution('smd 907=') == ['079', '920', '920']
  with pytest.raises(ValueError, match='not a prompt of FamilyChains'):
    family_chains.solution('xi 314=')


@pytest.mark.parametrize(
  'response, outcome, steps, consistent, checked, repeats',
  [
    ('413;524>524', 1, 1, 1, 0, 0),
    ('413;534?524>524', 1, 0.5, 1, 1, 0),
    ('413;524?524>525', 0, 1, 0, 1, 0),
    ('413;524;524>524', 1, 2 / 3, 1, 0, 1),
    ('413>524', 1, 0.5, 0, 0, 0),
    ('413;524', 0, 0, 0, 0, 0),
    ('', 0, 0, 0, 0, 0),
  ],
)
def test_components_by_hand(
  response, outcome, steps, consistent, checked, repeats
):
  found = FamilyChains().reward(EXAMPLE, response)
  found.pop('written')
  assert found == {
    'outcome': outcome,
    'steps': steps,
    'consistent': consistent,
    'checked': checked,
    'repeats': repeats,
  }


def test_verdicts_by_hand():
  """Steps by their place, a check and an answer by the solution's end."""
  judged = {
    '413;524>524': [1, 1, 1],
    '413;534?524>524': [1, 0, 1, 1],
    '423;524;524>525': [0, 1, 0, 0],
    '>524': [0, 1],
    '413': [1],
  }
  for response, expected in judged.items():
    assert family_chains.verdicts(EXAMPLE.prompt, response) == expected
    parts = family_chains.parts(response)
    assert len(parts) == len(expected) and ''.join(parts) == response


def test_a_teacher_without_slips_is_right():
  """And its verdicts are 1 throughout; responses stay in the alphabet."""
  task = FamilyChains(checks=0.5)
  seen = set()
  for index in range(50):
    example = task.example('train', index)
    response = task.target(example)
    assert set(example.prompt + response) <= set(task.alphabet)
    found = task.reward(example, response)
    assert found['outcome'] == found['steps'] == found['consistent'] == 1.0
    assert min(family_chains.verdicts(example.prompt, response)) == 1.0
    seen.add(found['checked'])
  assert seen == {0.0, 1.0}


def test_faults_of_the_teacher():
  """Slips make wrong steps, contradictions answers that the chain denies."""
  slips = FamilyChains(slips=1.0)
  denials = FamilyChains(contradictions=1.0)
  for index in range(20):
    example = slips.example('validation', index)
    assert slips.reward(example, slips.target(example))['steps'] < 1.0
    found = denials.reward(example, denials.target(example))
    assert found['consistent'] == found['outcome'] == 0.0 < found['steps']


def test_a_teacher_that_guesses_writes_no_thoughts():
  """The last step and the answer; without guesses every chain is as before."""
  plain, guesses = FamilyChains(slips=0.5), FamilyChains(slips=0.5, guesses=1.0)
  for index in range(20):
    example = plain.example('train', index)
    steps = plain.target(example).partition('>')[0].split(';')
    assert guesses.target(example) == f'{steps[-1]}>{steps[-1]}'


def test_bad_arguments_are_named():
  with pytest.raises(ValueError, match='FamilyChains.min_rules'):
    FamilyChains(min_rules=4, max_rules=3)
