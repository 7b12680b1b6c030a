"""Topics, their criteria, and rows to learn from."""

import pytest

from rl_jax.worlds import RubricTopics


def test_criteria_are_those_of_the_right_answer():
  task = RubricTopics()
  example = task.example('validation', 3)
  assert example == task.example('train', 3) and len(example.prompt) == 3
  items = task.rubric(example)
  assert ''.join(items[2]) == f'3{example.answer[2]}'
  shown = task.with_rubric(example, items[1:3])
  assert shown.prompt == f'{example.prompt[:2]}{items[1]}{items[2]}='
  assert task.reward(shown, example.answer) == {'outcome': 1.0, 'points': 1.0}
  assert task.with_rubric(example, ()) == example


def test_points_by_hand():
  task = RubricTopics()
  example = task.example('train', 0)
  other = ''.join('b' if x == 'a' else 'a' for x in example.answer)
  half = example.answer[:2] + other[2:]
  assert task.reward(example, half) == {'outcome': 0.0, 'points': 0.4}
  assert task.reward(example, example.answer[:2])['points'] == 0.4
  assert task.reward(example, example.answer + 'a')['points'] == 0.0
  assert task.reward(example, '')['points'] == 0.0


def test_rows_to_learn_from_meet_what_they_show():
  task = RubricTopics(shown=True)
  counts = set()
  for index in range(40):
    example = task.example('train', index)
    assert set(example.prompt + example.answer) <= set(task.alphabet)
    shown = example.prompt[2:-1]
    for place in range(0, len(shown), 2):
      number, letter = shown[place : place + 2]
      assert example.answer[int(number) - 1] == letter
    counts.add(len(shown) // 2)
  assert counts == set(range(6))
  assert task.example('validation', 3) == RubricTopics().example('train', 3)


def test_bad_fields_are_named():
  with pytest.raises(ValueError, match='num_topics = 101'):
    RubricTopics(num_topics=101)
