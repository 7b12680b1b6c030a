"""Rows of recipes that are conversations, have columns or are of one kind."""

import dataclasses
import json
import pathlib

import pytest

from experiments import evaluate_reward
from experiments.papers import data_files, settings, tiny
from experiments.papers import recipe as recipe_lib
from experiments.papers.recipe import Benchmark, ByHand, DataSource
from experiments.sweeps import recipes
from experiments.tables import published
from rl_jax.tasks import (
  ChatTemplate,
  PreferenceRows,
  QuestionAnswer,
  RewardFunctions,
)

SOURCE = DataSource(
  name='calls',
  repository='git:someone/calls',
  revision='main',
  path='rows.jsonl',
  columns=('system', 'user', 'gold', 'kind'),
  question='{user}',
  system='{system}',
  answer='',
)
LINES = [
  {'system': 'Tools.', 'user': 'a?', 'gold': [{'x': 1}], 'kind': 'one'},
  {'system': 'Tools.', 'user': 'b?', 'gold': [], 'kind': 'two'},
  {'system': 'Tools.', 'user': 'a?', 'gold': [{'x': 2}], 'kind': 'one'},
]


def converted(source, folder, lines=LINES):
  """The rows that are written of these lines, and the manifest."""
  path = pathlib.Path(data_files.places(source, str(folder)).raw)
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(''.join(json.dumps(line) + '\n' for line in lines))
  manifest = data_files.prepare(source, str(folder))
  text = pathlib.Path(data_files.places(source, str(folder)).rows).read_text()
  return [json.loads(line) for line in text.splitlines()], manifest


def changed(**fields):
  return dataclasses.replace(SOURCE, **fields)


def test_a_system_message_of_a_column(tmp_path):
  """The question becomes a conversation, and repeated ones are left out."""
  rows, found = converted(SOURCE, tmp_path)
  system = {'role': 'system', 'content': 'Tools.'}
  assert rows == [
    {'id': n, 'question': [system, {'role': 'user', 'content': text}]}
    for n, text in enumerate(('a?', 'b?'))
  ]
  assert (found['total'], found['unique']) == (3, 2)


def test_columns_are_kept_and_questions_may_repeat(tmp_path):
  rows, found = converted(changed(keep=('gold',), repeats=True), tmp_path)
  assert [row['gold'] for row in rows] == [[{'x': 1}], [], [{'x': 2}]]
  assert [row['id'] for row in rows] == [0, 1, 2]
  assert (found['total'], found['unique']) == (3, 2)


def test_rows_of_one_kind(tmp_path):
  """Counts are of these rows."""
  source = changed(only=('kind', 'two'), rows=1, unique=1)
  rows, _ = converted(source, tmp_path)
  assert [row['question'][-1]['content'] for row in rows] == ['b?']


def test_rows_without_a_question_are_what_they_keep(tmp_path):
  """Equal ones are there once."""
  source = changed(question='', system='', keep=('user', 'kind'))
  rows, found = converted(source, tmp_path)
  assert rows == [
    {'id': 0, 'user': 'a?', 'kind': 'one'},
    {'id': 1, 'user': 'b?', 'kind': 'two'},
  ]
  assert found['unique'] == 2


def test_a_question_may_be_a_conversation(tmp_path):
  """Texts around every question are taken off the last turn."""
  source = DataSource(
    name='turns',
    repository='hf:someone/turns',
    revision='main',
    path='rows.jsonl',
    columns=('prompt', 'answer'),
    question='{prompt}',
    suffix=' Think.',
  )
  turns = [
    {'role': 'system', 'content': 'S'},
    {'role': 'user', 'content': '1+1? Think.'},
  ]
  rows, _ = converted(source, tmp_path, [{'prompt': turns, 'answer': 2}])
  user = {'role': 'user', 'content': '1+1?'}
  assert rows == [{'id': 0, 'question': [turns[0], user], 'answer': '2'}]
  path = data_files.places(source, str(tmp_path)).rows
  task = QuestionAnswer(
    sources={'train': path}, template=ChatTemplate(user='{question} Think.')
  )
  assert task.example('train', 0).messages == tuple(turns)


def test_a_manifest_of_an_earlier_version_counts(tmp_path):
  """It lacks the fields that sources had not, which have their defaults."""
  plain = changed(system='')
  _, found = converted(plain, tmp_path)
  for name in ('system', 'keep', 'only', 'repeats'):
    del found['source'][name]
  pathlib.Path(data_files.places(plain, str(tmp_path)).manifest).write_text(
    json.dumps(found)
  )
  assert data_files.read_manifest(plain, str(tmp_path)) == found
  assert data_files.read_manifest(SOURCE, str(tmp_path)) is None


@pytest.mark.parametrize(
  ('fields', 'message'),
  [
    ({'question': '', 'system': ''}, 'question and keep are empty'),
    ({'keep': ('level',)}, r"lacks \['level'\], which question, answer, sys"),
    ({'only': ('level', '5')}, r"lacks \['level'\]"),
    ({'system': '{tools}'}, r"lacks \['tools'\]"),
  ],
)
def test_a_source_that_cannot_be(fields, message):
  with pytest.raises(ValueError, match=message):
    changed(**fields)


def test_rows_by_hand_are_of_a_source():
  recipe = recipe_lib.load('toolrl')
  with pytest.raises(ValueError, match=r"by_hand has \['calls'\], but no such"):
    dataclasses.replace(recipe, by_hand={'calls': (ByHand(row={}),)})


def test_the_rows_of_a_task_on_others():
  """The innermost task has the file, whatever is around it."""
  inner = QuestionAnswer(sources={'train': 'a.jsonl'}, answer='')
  outer = RewardFunctions(
    task=inner, functions={'rl_jax.tasks.call_reward:api_bank': 1.0}
  )
  assert settings.rows_of(inner) == ('task', inner)
  assert settings.rows_of(outer) == ('task.task', inner)
  pairs = PreferenceRows(path='b.jsonl')
  assert settings.rows_of(pairs) == ('task', pairs)
  other = settings.with_rows(outer, sources={'test': 'c.jsonl'})
  assert other.task.sources == {'test': 'c.jsonl'}
  one = Benchmark(data=SOURCE, changes={'extract': 'boxed'})
  found = settings.evaluation({'calls': one}, outer, every=1)
  assert found.sets[0].task.task.extract == 'boxed'
  assert found.sets[0].task.task.sources == {'test': SOURCE.file}


@pytest.mark.parametrize('name', ['process_bench', 'reward_bench', 'rlhflow'])
def test_recipes_that_only_measure(name, tmp_path):
  """Their rows are what the command reads; they train nothing, and say so."""
  recipe = recipe_lib.load(name)
  where = tiny.write_data(recipe, str(tmp_path))
  for source in recipe.data:
    hand = recipe.by_hand[source.name]
    if name == 'reward_bench':
      found = evaluate_reward.read(where[source.name])
      assert [len(one.wrong) for one in found] == [3] * len(hand)
      assert [one.id for one in found] == [one.row['id'] for one in hand]
    elif name == 'process_bench':
      found = evaluate_reward.read_steps(where[source.name], '')
      assert [row[2] for row in found] == [one.row['label'] for one in hand]
  with pytest.raises(ValueError, match=f'{name} trains nothing, but measures:'):
    recipe_lib.protocol(name)
  with pytest.raises(ValueError, match='trains nothing'):
    recipes.members(name, 'paper', (), 1, str(tmp_path))
  _, *rows = published.cells(name, [])
  assert {row[1] for row in rows} == {'published'}
  for row, command in recipe.measured.items():
    (line,) = [x for x in rows if x[0] == row]
    assert line[-1] == f'`{command}`'
