"""Questions about two rows of digits, and answers that a judge learns from."""

import pytest

from experiments.flags import configuration
from rl_jax.judging import judge_questions
from rl_jax.tasks import Levels
from rl_jax.tasks.base import Example
from rl_jax.worlds import (
  AnsweredFamilies,
  Families,
  ShownFamilies,
  shown_families,
)


@pytest.mark.parametrize(
  ('prompt', 'right'),
  [
    ('3 1 4>4 1 3=', 'r'),
    ('3 1 4>1 3 4=', 's'),
    ('3 1 4>4 2 5=', 'i'),
    ('3 1 4>6 8 5=', 'm'),
    ('3 1 3>3 1 3=', 'cr'),  # a palindrome
    ('4 3 1>4 3 1=', 'cd'),
    ('9 0>0 9=', 'rsm'),
    ('9 0>0 1=', 'i'),  # 9 and 1 is 0
  ],
)
def test_answers_by_hand(prompt, right):
  """Every letter that leads there is right, and nothing else."""
  example = Example(prompt=prompt, answer=right[0], id=0)
  for letter in shown_families.LETTERS + 'x3':
    expected = float(letter in right)
    found = ShownFamilies().reward(example, letter)
    assert found == {'outcome': expected, 'places': expected}
    hidden = ShownFamilies(verified=False).reward(example, letter)
    assert hidden == {'outcome': 0.0, 'places': 0.0}
  for wrong in ('', right[0] * 2, right[0] + ' '):
    assert ShownFamilies().reward(example, wrong)['outcome'] == 0.0


def test_questions_are_functions_of_the_index():
  """E0: the target is right; lessons have labels that say what is right."""
  task, lessons = ShownFamilies(), AnsweredFamilies()
  labels = []
  for index in range(60):
    example = task.example('train', index)
    assert example == task.example('train', index)
    assert task.reward(example, task.target(example))['outcome'] == 1.0
    lesson = lessons.example('train', index)
    assert lesson.prompt[:-2] == example.prompt
    letter = lesson.prompt[-2]
    right = task.reward(example, letter)['outcome']
    assert lesson.answer == lessons.target(lesson) == '01'[int(right)]
    assert lessons.reward(lesson, lesson.answer) == {'outcome': 1.0}
    assert set(lesson.prompt) <= set(lessons.alphabet)
    labels.append(right)
  assert 25 < sum(labels) < 45  # half, and a few of what is drawn


def test_a_teacher_that_errs_is_the_same_always():
  """E0: with errors = 1 all labels are turned."""
  plain = AnsweredFamilies()
  some, every = (AnsweredFamilies(errors=x) for x in (0.3, 1.0))
  lessons = [plain.example('train', index) for index in range(50)]
  assert [x for x in lessons if every.target(x) == x.answer] == []
  wrong = [some.target(x) != x.answer for x in lessons]
  assert wrong == [some.target(x) != x.answer for x in lessons]
  assert 5 < sum(wrong) < 25


def test_the_judge_is_asked_what_it_learns_and_about_questions_only():
  """E0."""
  config = configuration.build('understood_levels', 'craft_gui@understood', [])
  (judge,), task = config.judges, config.task
  action, question = task.example('train', 0), task.example('train', 3)
  assert not judge_questions.judges(judge, action)
  assert judge_questions.judges(judge, question)
  (asked,) = judge_questions.questions(judge, question, {0: 'r'})
  assert asked.text == f'{question.prompt}r:'
  lesson = AnsweredFamilies().example('train', 0)
  assert len(lesson.prompt) == len(asked.text) <= judge.max_tokens


def test_without_a_judge_questions_have_no_reward():
  """E0: other levels are as in family_levels."""
  plain = configuration.build('family_levels', 'craft_gui', []).task
  four = configuration.build('understood_levels', 'craft_gui', []).task
  assert isinstance(four, Levels) and four.tasks[:3] == plain.tasks
  assert all(isinstance(task, Families) for task in plain.tasks)
  example = four.example('train', 3)
  assert four.reward(example, four.target(example))['outcome'] == 0.0


def test_bad_arguments_are_named():
  with pytest.raises(ValueError, match='ShownFamilies.digits = 1'):
    ShownFamilies(digits=1)
  with pytest.raises(ValueError, match='AnsweredFamilies.errors = 2'):
    AnsweredFamilies(errors=2.0)
