"""Forms with instructions of a file."""

import json

import pytest

from rl_jax.worlds import InstructedForm, WebForm

ROWS = [
  {'goal': '304', 'instruction': 'a3b0c4'},
  {'goal': '112', 'instruction': 'a1b2'},  # which does not say the goal
]


@pytest.fixture
def path(tmp_path):
  file = tmp_path / 'rows.jsonl'
  file.write_text(''.join(json.dumps(x) + '\n' for x in ROWS))
  return str(file)


def outcome(task, example, actions):
  episode = task.make(example)
  first = episode.reset(0).observation
  replies = [episode.step(x) for x in actions]
  return first, replies[-1].rewards['outcome']


def test_rewards_are_measured_against_the_goal(path):
  """Whatever the instruction says."""
  task = InstructedForm(path=path)
  assert task.num_prompts('train') == 2
  one, two = (task.example('train', i) for i in range(2))
  assert outcome(task, one, ['a3', 'b0', 'c4', 's']) == (
    'a3b0c4:a-b-c-s>',
    1.0,
  )
  assert outcome(task, two, ['a1', 'b2', 's']) == ('a1b2:a-b-c-s>', 0.0)
  assert outcome(task, two, ['a1', 'b1', 'c2', 's'])[1] == 1.0
  assert task.actions(one) == ['a3', 'b0', 'c4', 's']


def test_instructions_that_say_the_goal_are_those_of_the_form(path):
  """E0: the first observation and every reply; so are held-out forms."""
  task, plain = InstructedForm(path=path), WebForm()
  held_out = task.example('validation', 3)
  assert held_out == plain.example('validation', 3)
  own = plain.pages(held_out)
  assert task.pages(held_out) == own and own[1] == '---'
  actions = [*task.actions(held_out)]
  assert outcome(task, held_out, actions) == outcome(plain, held_out, actions)


def test_filled_fields_are_those_of_the_goal(path):
  task = InstructedForm(path=path, filled=(1.0,))
  assert task.pages(task.example('train', 0)) == ('304', '304')


@pytest.mark.parametrize(
  'given, message',
  [
    ({'path': ''}, "InstructedForm.path = ''"),
    ({'goals': (1,)}, 'goals = \\(1,\\)'),
  ],
)
def test_wrong_fields_are_named(path, given, message):
  with pytest.raises(ValueError, match=message):
    InstructedForm(**{'path': path} | given)


def test_goals_of_another_size_are_refused(path):
  with pytest.raises(ValueError, match='row 1 has .*expected two texts'):
    InstructedForm(path=path, fields=2).num_prompts('train')
