"""Rows with options: how they are read, shown, shuffled and judged."""

import dataclasses
import json

import pytest

from rl_jax.serialization import from_json, to_json
from rl_jax.tasks import ChatTemplate, ChoiceRows, EvaluationSet
from rl_jax.tasks.base import Option
from rl_jax.tasks.sources import BadRowError

ROW = {'question': 'Sky?', 'choices': ['red', 'blue', 'B'], 'answer': 1}


def task_of(folder, *rows, **fields):
  """A task on these rows, as its test split."""
  path = folder / 'rows.jsonl'
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  return ChoiceRows(sources={'test': str(path)}, **fields)


def options_of(task, index=0):
  return task.scored_options(task.example('test', index))


@pytest.mark.parametrize(
  ('gold', 'fields'),
  [
    (1, {}),
    ('1', {}),
    ('B', {}),
    ('2', {'labels': 'names'}),
    (2, {'labels': 'names'}),
  ],
)
def test_the_right_option(tmp_path, gold, fields):
  """A place from 0, a letter, or a label, which may be a number, too."""
  row = {**ROW, 'answer': gold, 'names': ['1', '2', '3']}
  task = task_of(tmp_path, row, **fields)
  assert options_of(task) == (
    Option('red', ' ', False),
    Option('blue', ' ', True),
    Option('B', ' ', False),
  )
  assert task.target(task.example('test', 0)) == ' blue'
  assert task.num_prompts('test') == 1 and task.num_prompts('train') == 0


def test_options_of_several_columns(tmp_path):
  """Without gold the first one is right; names may have any form."""
  row = {'Q': 'Sky?', 'Correct Answer': ' blue\n', 'Wrong 1': 7.0}
  task = task_of(
    tmp_path,
    row,
    question='{Q}',
    options=('Correct Answer', 'Wrong 1'),
    gold='',
  )
  assert [(x.text, x.right) for x in options_of(task)] == [
    ('blue', True),
    ('7', False),
  ]


def test_prompts_may_show_the_options(tmp_path):
  """Letters are then what is scored, if the task says so."""
  task = task_of(
    tmp_path,
    ROW,
    heading='\nOptions:\n',
    listing='({letter}) {option}',
    scored='letter',
    between='',
  )
  example = task.example('test', 0)
  assert example.prompt == (
    'Question: Sky?\nOptions:\n(A) red\n(B) blue\n(C) B\nAnswer:'
  )
  assert [(x.text, x.before) for x in task.scored_options(example)] == [
    ('A', ''),
    ('B', ''),
    ('C', ''),
  ]
  chat = dataclasses.replace(task, template=ChatTemplate(system='Be brief.'))
  assert chat.example('test', 0).messages[1]['content'].endswith('(C) B')
  assert task_of(tmp_path, ROW).example('test', 0).prompt == (
    'Question: Sky?\nAnswer:'
  )


def test_shuffled_options(tmp_path):
  """The order is a function of the row; each place is right about as often."""
  rows = [{**ROW, 'question': str(i)} for i in range(300)]
  task = task_of(tmp_path, *rows, shuffle=True)
  places = [0, 0, 0]
  for i in range(300):
    found = options_of(task, i)
    assert found == options_of(task, i)
    assert {x.text for x in found} == {'red', 'blue', 'B'}
    (right,) = [place for place, x in enumerate(found) if x.right]
    assert found[right].text == 'blue'
    places[right] += 1
  assert min(places) > 70
  other = dataclasses.replace(task, seed=1)
  assert any(options_of(other, i) != options_of(task, i) for i in range(9))


@pytest.mark.parametrize(
  ('response', 'outcome'),
  [
    ('Answer: B', 1.0),
    ('Answer: (b)', 1.0),
    ('Answer: **B**', 1.0),
    ('Answer: B. blue', 1.0),
    ('Answer: blue', 1.0),
    ('Answer: A', 0.0),
    ('Answer: C', 0.0),  # the third option, whose text is B
    ('Answer: D', 0.0),  # there is none
    ('Answer: A blue one', 0.0),
    ('Answer: A\nAnswer: B', 1.0),
    ('blue', 0.0),
    ('', 0.0),
  ],
)
def test_a_response_names_an_option(tmp_path, response, outcome):
  """Letters come before texts: 'B' is the second option, not the third."""
  task = task_of(tmp_path, ROW, listing='{letter}. {option}')
  example = task.example('test', 0)
  assert task.reward(example, response) == {'outcome': outcome}


@pytest.mark.parametrize(
  ('changes', 'message'),
  [
    ({'choices': None}, r"rows.jsonl:1: field 'choices' is NoneType, no list"),
    ({'choices': 'red'}, r"field 'choices' is str, no list of options"),
    ({'choices': []}, r"field 'choices' has 0 options, expected from 2 to 26"),
    ({'choices': ['red']}, r'has 1 options, expected from 2'),
    ({'choices': ['red', ' \n']}, r"field 'choices.1' is an empty option"),
    ({'choices': ['red', {}]}, r"field 'choices.1' is dict, not text"),
    (
      {'answer': 3},
      r"'answer' = 3: expected a place from 0 to 2, .* 3 options",
    ),
    ({'answer': -1}, r"'answer' = -1: expected a place from 0 to 2"),
    ({'answer': 'D'}, r"'answer' = 'D': expected one of \['A', 'B', 'C'\]"),
    ({'answer': 'blue'}, r"'answer' = 'blue': expected one of"),
    ({'answer': None}, r"field 'answer' is NoneType, not text"),
    ({'question': ' '}, r'rows.jsonl:1: the question is empty'),
  ],
)
def test_a_bad_row_is_named(tmp_path, changes, message):
  """File, row and column; or it is counted."""
  bad = {**ROW, **changes}
  with pytest.raises(BadRowError, match=message):
    task_of(tmp_path, bad).num_prompts('test')
  task = task_of(tmp_path, bad, ROW, bad_rows='skip')
  assert task.num_prompts('test') == 1


def test_columns_that_are_missing(tmp_path):
  lost = {'question': 'Sky?', 'answer': 0}
  with pytest.raises(BadRowError, match="1: field 'choices' is missing; pres"):
    task_of(tmp_path, lost).num_prompts('test')
  with pytest.raises(BadRowError, match="1: field 'names' is missing"):
    task_of(tmp_path, ROW, labels='names').num_prompts('test')
  with pytest.raises(BadRowError, match="'names' does not list 3 labels"):
    task_of(tmp_path, {**ROW, 'names': ['x']}, labels='names').num_prompts(
      'test'
    )
  with pytest.raises(ValueError, match=r"has 1 usable rows.*\['test'\] = 2"):
    task_of(tmp_path, ROW, num_rows={'test': 2}).num_prompts('test')


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'question': 'Sky?'}, 'question = .* names no field'),
    ({'options': ()}, r'options = \(\): expected the name of a field'),
    ({'options': ('a',)}, 'two names of fields at least'),
    ({'listing': '{letter}'}, r'listing = .* does not contain \{option\}'),
    ({'scored': 'letter'}, 'the prompt shows no letters'),
    ({'sources': {}}, 'ChoiceRows.sources is empty'),
    ({'sources': {'tests': 'x'}}, 'tests'),
    ({'num_rows': {'train': 1}}, r"num_rows has \['train'\]"),
  ],
)
def test_fields_that_do_not_fit(fields, message):
  with pytest.raises(ValueError, match=message):
    ChoiceRows(**{'sources': {'test': 'x.jsonl'}, **fields})


def test_it_is_a_task_of_configurations(tmp_path):
  """JSON keeps it; as an evaluation set it has the same options."""
  task = task_of(tmp_path, ROW)
  assert from_json(to_json(task)) == task
  one = EvaluationSet('sky', task=task, options=True)
  assert one.supports('scored_options')
  example = one.example('test', 0)
  assert one.scored_options(example) == options_of(task)
