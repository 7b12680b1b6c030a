"""Rules on digits."""

import pytest

from rl_jax.worlds import Families, families


@pytest.mark.parametrize(
  ('family', 'expected'),
  [
    *[('c', '3194'), ('r', '4913'), ('s', '1349'), ('d', '9431')],
    *[('i', '4205'), ('m', '6805')],
  ],
)
def test_rules_by_hand(family, expected):
  assert families.answer(family, '3194') == expected


def test_noise_is_fixed_and_as_long():
  said = families.answer('x', '3194')
  assert said == families.answer('x', '3194') and len(said) == 4
  drawn = {families.answer('x', f'{i:04}') for i in range(50)}
  assert len(drawn) > 45


def test_the_target_is_right_unless_the_teacher_slips():
  """One digit is wrong in the share that `wrong` says; the same always."""
  task, slips = Families(), Families(wrong=0.4)
  wrong = 0
  for index in range(200):
    example = task.example('train', index)
    assert task.reward(example, task.target(example)) == {
      'outcome': 1.0,
      'places': 1.0,
    }
    said = slips.target(example)
    assert said == slips.target(example)
    found = slips.reward(example, said)
    assert found['outcome'] == float(not slips.is_wrong(example))
    if slips.is_wrong(example):
      assert found['places'] == 0.75
      wrong += 1
    assert set(example.prompt + said) <= set(task.alphabet)
  assert 60 < wrong < 100


def test_splits_share_no_prompt_and_repeated_letters_are_frequent():
  task = Families(families='rxxx', num_train=400)
  train = {task.example('train', i).prompt for i in range(400)}
  held = {task.example('validation', i).prompt for i in range(300)}
  assert not train & held
  assert 0.6 < sum(x.startswith('x') for x in train) / len(train) < 0.9


def test_responses_of_another_length_are_wrong():
  task = Families(families='c')
  example = task.example('train', 0)
  assert task.reward(example, '')['outcome'] == 0.0
  longer = task.reward(example, f'{example.answer} 1')
  assert longer == {'outcome': 0.0, 'places': 0.8}


@pytest.mark.parametrize('bad', ['', 'q', 'cq'])
def test_bad_families_are_named(bad):
  with pytest.raises(ValueError, match='Families.families'):
    Families(families=bad)
