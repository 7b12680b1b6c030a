"""Files of preferences in the forms of TRL, and what is wrong with bad ones."""

import json
import pathlib

import pytest

from rl_jax.tasks import PreferenceRows, RulePairs
from rl_jax.tasks.base import RecordedResponse
from rl_jax.tasks.sources import BadRowError
from rl_jax.worlds import Arithmetic

NEEDS = "needs the extra 'data'"
FOLDER = pathlib.Path(__file__).parent / 'preferences'
FIVE = {'role': 'assistant', 'content': '5'}
USER = {'role': 'user', 'content': 'What is 2 + 3?'}


def load(name):
  """(task, first example, its responses) of a shipped file."""
  task = PreferenceRows(path=str(FOLDER / f'{name}.jsonl'))
  example = task.example('train', 0)
  return task, example, task.recorded(example)


@pytest.mark.parametrize(
  'name, prompt, responses',
  [
    (
      'pair',
      'What is 2 + 3?',
      (
        RecordedResponse(text=' 5', reward=1.0, label=1),
        RecordedResponse(text=' 6', reward=0.0, label=0),
      ),
    ),
    (
      'implicit',  # not cut after a space
      'The sky is',
      (
        RecordedResponse(text=' blue.', reward=1.0, label=1),
        RecordedResponse(text=' green.', reward=0.0, label=0),
      ),
    ),
    (
      'label',
      'What is 2 + 3?',
      (RecordedResponse(text=' 5', reward=1.0, label=1),),
    ),
    (
      'scores',
      'What is 2 + 3?',
      (
        RecordedResponse(text=' 6', reward=0.0),
        RecordedResponse(text=' 5', reward=1.0),
        RecordedResponse(text=' five', reward=0.5),
      ),
    ),
    ('completion', 'What is 2 + 3?', (RecordedResponse(text=' 5'),)),
    (
      'steps',
      'What is 2 + 3 + 4?',
      (
        RecordedResponse(
          text='2 + 3 = 5\n5 + 4 = 8\n',
          reward=0.0,
          steps=('2 + 3 = 5\n', '5 + 4 = 8\n'),
          step_labels=(1.0, 0.0),
        ),
      ),
    ),
  ],
)
def test_plain_forms(name, prompt, responses):
  task, example, found = load(name)
  assert (example.prompt, found) == (prompt, responses)
  assert task.num_recorded == len(responses)


def test_conversations():
  """The prompt, given or what both begin with, and the assistant's turns."""
  _, example, (chosen, rejected) = load('conversational')
  assert [m['role'] for m in example.messages] == ['system', 'user']
  assert chosen.messages == (FIVE,) and chosen.label == 1
  assert rejected.messages[0]['content'] == 'It is 6.'
  _, example, (chosen, rejected) = load('implicit_conversational')
  assert example.messages == (USER,) and chosen.messages == (FIVE,)
  assert rejected.messages[0]['content'] == '6' and rejected.label == 0
  _, example, (whole,) = load('messages')
  assert example.messages == (USER,) and example.answer == '10'
  roles = [m['role'] for m in whole.messages]
  assert roles == ['assistant', 'user', 'assistant']


def test_distance_of_the_chosen_response(tmp_path):
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({**PAIR, 'semantic_distance': 0.25}) + '\n')
  task = PreferenceRows(path=str(path))
  chosen, rejected = task.recorded(task.example('train', 0))
  assert (chosen.distance, rejected.distance) == (0.25, None)


def test_samples_beside_a_pair(tmp_path):
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({**PAIR, 'samples': ['7', '8']}) + '\n')
  task = PreferenceRows(path=str(path))
  found = task.recorded(task.example('train', 0))
  assert [x.label for x in found] == [1, 0, None, None]
  assert [x.text for x in found[2:]] == ['7', '8']
  assert task.num_recorded == 4
  wrong = tmp_path / 'wrong.jsonl'
  wrong.write_text(json.dumps({**PAIR, 'samples': '7'}) + '\n')
  with pytest.raises(BadRowError, match="'samples' must be a list"):
    PreferenceRows(path=str(wrong)).num_prompts('train')


@pytest.mark.parametrize(
  ('chosen', 'rejected', 'parts'),
  [
    ('a sky', 'a sky is', ('a sk', 'y', 'y is')),
    ('a b', 'a b c', ('a', ' b', ' b c')),
    ('a bc', 'a bd', ('a b', 'c', 'd')),
    ('a b', 'a c', ('a', ' b', ' c')),
  ],
)
def test_of_a_common_beginning_each_response_keeps_something(
  tmp_path, chosen, rejected, parts
):
  """Also where one response continues where the other ends."""
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({'chosen': chosen, 'rejected': rejected}))
  task = PreferenceRows(path=str(path))
  example = task.example('train', 0)
  found = example.prompt, *(x.text for x in task.recorded(example))
  assert found == parts


def test_a_conversation_that_ends_earlier(tmp_path):
  """The turn that both have is a response; a prompt of theirs is repeated."""
  path = tmp_path / 'rows.jsonl'
  row = {'chosen': [USER, FIVE], 'rejected': [USER, FIVE, USER, FIVE]}
  path.write_text(json.dumps({'prompt': [USER], 'images': [], **row}))
  task = PreferenceRows(path=str(path))
  example = task.example('train', 0)
  chosen, rejected = task.recorded(example)
  assert example.messages == (USER,) and chosen.messages == (FIVE,)
  assert rejected.messages == (FIVE, USER, FIVE)


def test_second_row_and_validation():
  task = PreferenceRows(path=str(FOLDER / 'label.jsonl'), num_validation=1)
  assert [task.num_prompts(s) for s in ('train', 'validation', 'test')] == [
    *(1, 1, 0)
  ]
  held = task.example('validation', 0)
  assert task.recorded(held) == (
    RecordedResponse(text=' 8', reward=0.0, label=0),
  )
  assert task.reward(held, ' 8') == {'outcome': 1.0}


def test_parquet_equals_jsonl(tmp_path):
  """A file of the datasets package, with nested messages."""
  parquet = pytest.importorskip('pyarrow.parquet', reason=NEEDS)
  pa = pytest.importorskip('pyarrow', reason=NEEDS)
  for name in ('conversational', 'scores', 'label'):
    lines = (FOLDER / f'{name}.jsonl').read_text().splitlines()
    table = pa.Table.from_pylist([json.loads(line) for line in lines])
    parquet.write_table(table, tmp_path / f'{name}.parquet')
    task = PreferenceRows(path=str(tmp_path / f'{name}.parquet'))
    whole, *_ = load(name)
    for index in range(2):
      one, other = (t.example('train', index) for t in (task, whole))
      assert (one.prompt, one.messages) == (other.prompt, other.messages)
      assert task.recorded(one) == whole.recorded(other)


CALL = {'name': 'add', 'arguments': {'a': 2}}


def test_what_templates_read_of_conversations(tmp_path):
  """Tools, template arguments, calls without content, parts, developers."""
  calls = [{'type': 'function', 'function': CALL}]
  tools = [{'name': 'add', 'description': None}]
  rows = [
    {
      'messages': [
        {'role': 'developer', 'content': 'Be short.'},
        {
          'role': 'user',
          'content': [{'type': 'text', 'text': x} for x in 'ab'],
        },
        {'role': 'assistant', 'content': None, 'tool_calls': calls},
        {'role': 'tool', 'name': 'add', 'content': '5', 'tool_calls': None},
        FIVE,
      ],
      'tools': json.dumps(tools),
      'chat_template_kwargs': {'enable_thinking': False, 'mode': None},
    },
    {'messages': [USER, FIVE], 'tools': [], 'chat_template_kwargs': None},
  ]
  path = tmp_path / 'rows.jsonl'
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  task = PreferenceRows(path=str(path), arguments={'mode': 'fast'})
  first, second = (task.example('train', index) for index in range(2))
  assert first.messages == (rows[0]['messages'][0], {**USER, 'content': 'ab'})
  assert first.arguments == {
    'mode': 'fast',
    'enable_thinking': False,
    'tools': [{'name': 'add'}],
  }
  (whole,) = task.recorded(first)
  assert whole.messages == (
    {'role': 'assistant', 'content': '', 'tool_calls': calls},
    {'role': 'tool', 'name': 'add', 'content': '5'},
    FIVE,
  )
  assert second.arguments == {'mode': 'fast'}
  assert first.meta['place'] == f'{path}:1'


PAIR = {'prompt': 'a', 'chosen': 'b', 'rejected': 'c'}
CHAT = {'prompt': [USER], 'chosen': [FIVE], 'rejected': [FIVE]}
SCORED = {'prompt': 'a', 'responses': ['b', 'c'], 'scores': [1, 0]}


@pytest.mark.parametrize(
  'record, kind, message',
  [
    ({**PAIR, 'chosen': ''}, 'empty_chosen', "'chosen' is empty"),
    ({**PAIR, 'rejected': 'b'}, 'equal_responses', 'are equal'),
    ({'prompt': 'a', 'chosen': 'b'}, 'missing_field', 'expected chosen'),
    ({'chosen': 'b', 'rejected': 'c'}, 'missing_field', 'common beginning'),
    ({**PAIR, 'chosen': 3}, 'wrong_type', 'is int'),
    ({**PAIR, 'chosen': [FIVE]}, 'wrong_type', 'text'),
    (CHAT, 'equal_responses', 'are equal'),
    (
      {**CHAT, 'rejected': [USER]},
      'wrong_roles',
      "'rejected' is of the role 'user'",
    ),
    (
      {'prompt': [FIVE], 'completion': [FIVE], 'label': True},
      'wrong_roles',
      'prompt ends with',
    ),
    (
      {**CHAT, 'chosen': [{'role': 'bot', 'content': 'x'}]},
      'wrong_roles',
      "role 'bot', none of system, developer",
    ),
    (
      {'prompt': 'a', 'completion': 'b', 'label': 1},
      'wrong_label',
      "'label' is 1, not true or false",
    ),
    (
      {'prompt': 'a', 'label': True},
      'missing_field',
      "'completion' is missing",
    ),
    (
      {**PAIR, 'semantic_distance': 2.5},
      'wrong_distance',
      "'semantic_distance' is 2.5, not a number from 0 to 2",
    ),
    (
      {**PAIR, 'semantic_distance': True},
      'wrong_distance',
      "'semantic_distance' is True",
    ),
    (
      {**PAIR, 'semantic_distance': 0.5},
      'other_form',
      'one file, one form',
    ),
    ({**PAIR, 'images': ['x.png']}, 'images', "'images' is given, and only"),
    (
      {
        'prompt': [{'role': 'system', 'content': 'x'}],
        'chosen': [USER, FIVE],
        'rejected': [USER, {**FIVE, 'content': '6'}],
      },
      'other_prompt',
      "'prompt' is not how the conversations",
    ),
    ({**PAIR, 'tools': [{}]}, 'wrong_type', 'tools for a chat template, but'),
    ({**PAIR, 'tools': '[{'}, 'wrong_type', "'tools' is not JSON"),
    ({**PAIR, 'tools': ['add']}, 'wrong_type', 'is not a list of objects'),
    (
      {**PAIR, 'chat_template_kwargs': {'messages': []}},
      'wrong_type',
      "'chat_template_kwargs' sets messages",
    ),
    (
      {**CHAT, 'chosen': [{**FIVE, 'content': None}]},
      'wrong_type',
      'the content is NoneType, not text',
    ),
    (
      {**CHAT, 'chosen': [{**FIVE, 'content': [{'type': 'image'}]}]},
      'wrong_type',
      "has a part {'type': 'image'}",
    ),
    ({**SCORED, 'scores': [1]}, 'wrong_length', '2 responses and 1 scores'),
    ({**SCORED, 'scores': [1, True]}, 'wrong_score', 'True in scores'),
    ({**SCORED, 'scores': [1, float('inf')]}, 'wrong_score', 'not finite'),
    ({**SCORED, 'scores': [1, 10**400]}, 'wrong_score', '0 in scores is not'),
    ({**SCORED, 'scores': [1, -(10**400)]}, 'wrong_score', 'larger than 3.4e'),
    ({**SCORED, 'scores': [1, 1e39]}, 'wrong_score', 'larger than 3.4e'),
    (
      {'prompt': 'a', 'completions': ['b'], 'labels': [2]},
      'wrong_label',
      '2 in labels is not from 0 to 1',
    ),
    (
      {'prompt': 'a', 'completions': ['b', 'c'], 'labels': [True]},
      'wrong_length',
      '2 steps and 1 labels',
    ),
    ({'messages': [USER]}, 'wrong_roles', 'no turn of the assistant'),
    ({'messages': [FIVE, USER, FIVE]}, 'wrong_roles', 'begins with'),
    ({'prompt': 'a', 'completion': 'b'}, 'other_form', 'one file, one form'),
  ],
)
def test_bad_rows_are_named_or_counted(tmp_path, record, kind, message, caplog):
  """With file and line; bad_rows='skip' counts them by kind."""
  first = PAIR
  if kind in ('wrong_label', 'wrong_length', 'wrong_score'):
    first = {**SCORED} if 'scores' in record else {**record, 'label': False}
    if 'labels' in record:
      first = {**record, 'completions': ['b'], 'labels': [True]}
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps(first) + '\n' + json.dumps(record) + '\n')
  with pytest.raises(ValueError, match=message) as error:
    PreferenceRows(path=str(path)).num_prompts('train')
  assert f'{path}:2: ' in str(error.value)
  skipping = PreferenceRows(path=str(path), bad_rows='skip')
  assert skipping.num_prompts('train') == 1
  assert f"'{kind}': 1" in caplog.text


def test_bad_rows_of_tables_are_named(tmp_path):
  """With the number of the row."""
  parquet = pytest.importorskip('pyarrow.parquet', reason=NEEDS)
  pa = pytest.importorskip('pyarrow', reason=NEEDS)
  path = tmp_path / 'rows.parquet'
  rows = [PAIR, {**PAIR, 'chosen': 'c'}]
  parquet.write_table(pa.Table.from_pylist(rows), path)
  with pytest.raises(ValueError, match='are equal') as error:
    PreferenceRows(path=str(path)).num_prompts('train')
  assert f'{path}:2: ' in str(error.value)


def test_broken_file(tmp_path):
  path = tmp_path / 'rows.parquet'
  path.write_bytes(b'PAR1 but no table')
  pytest.importorskip('pyarrow', reason=NEEDS)
  with pytest.raises(ValueError, match='cannot be read'):
    PreferenceRows(path=str(path)).num_prompts('train')
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps(PAIR) + '\n{"prompt": "a", "cho')
  with pytest.raises(ValueError, match=r'rows.jsonl:2: not valid JSON'):
    PreferenceRows(path=str(path)).num_prompts('train')


def test_rule_pairs():
  """The target, and the target with one other digit; labels flip by rate."""
  inner = Arithmetic(digits=2, signed=False)
  task = RulePairs(inner)
  assert task.num_prompts('train') == inner.num_prompts('train')
  for index in range(20):
    example = task.example('train', index)
    right, wrong = task.recorded(example)
    assert right == RecordedResponse(text=example.answer, reward=1.0, label=1)
    differs = [a != b for a, b in zip(right.text, wrong.text, strict=True)]
    assert sum(differs) == 1 and wrong.text.isdigit() and wrong.label == 0
    assert task.recorded(example) == (right, wrong)
  noisy = RulePairs(inner, flip_rate=0.25)
  flips = [
    noisy.recorded(noisy.example('train', i))[0].label == 0 for i in range(400)
  ]
  assert 0.2 < sum(flips) / 400 < 0.3
  (only,) = RulePairs(inner, form='right').recorded(inner.example('train', 3))
  assert only == RecordedResponse(text=inner.example('train', 3).answer)
  single = RulePairs(inner, form='label')
  found = [single.recorded(single.example('train', i)) for i in range(400)]
  assert all(len(one) == 1 for one in found)
  assert 0.45 < sum(one[0].label for one in found) / 400 < 0.55


def test_targets_are_the_responses_of_other_tasks():
  task = Arithmetic(digits=1)
  example = task.example('train', 0)
  assert task.recorded(example) == (RecordedResponse(text=example.answer),)
  assert task.num_recorded == 1


def test_fields_are_checked():
  with pytest.raises(ValueError, match='RulePairs.symbols'):
    RulePairs(Arithmetic(), symbols='00')
  with pytest.raises(ValueError, match='PreferenceRows.form'):
    PreferenceRows(path='x', form='pairs')


def test_scores_of_pairs_are_rewards(tmp_path):
  """Labels stay those of the data, whatever the scores say."""
  path = tmp_path / 'rows.jsonl'
  row = {'prompt': 'p', 'chosen': 'a', 'rejected': 'b'}
  scores = {'score_chosen': 1, 'score_rejected': 2.5}
  path.write_text(json.dumps(row | scores) + '\n')
  task = PreferenceRows(path=str(path))
  assert task.recorded(task.example('train', 0)) == (
    RecordedResponse(text='a', reward=1.0, label=1),
    RecordedResponse(text='b', reward=2.5, label=0),
  )
  bad = scores | {'score_chosen': 'x'}
  path.write_text(json.dumps(row | bad) + '\n')
  with pytest.raises(ValueError, match="'x' in score_chosen is not a number"):
    PreferenceRows(path=str(path), form='pair').num_prompts('train')


def test_of_a_text_the_first_character_is_the_prompt(tmp_path):
  """The rest is learned."""
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({'text': 'abc'}) + '\n')
  task = PreferenceRows(path=str(path))
  example = task.example('train', 0)
  assert (example.prompt, task.recorded(example)) == (
    'a',
    (RecordedResponse(text='bc'),),
  )
  path.write_text(json.dumps({'text': 'a'}) + '\n')
  with pytest.raises(ValueError, match="'text' is 'a': too short"):
    PreferenceRows(path=str(path), form='text').num_prompts('train')


def test_ratings_of_aspects(tmp_path):
  """By field; what is missing is None, a row without any is bad."""
  path = tmp_path / 'rows.jsonl'
  rows = [{'prompt': 'p', 'response': 'a', 'good': 4, 'short': 0.5}]
  rows.append({'prompt': 'p', 'response': 'b', 'good': None, 'short': 1})
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  task = PreferenceRows(path=str(path), aspects=('good', 'short'))
  found = [task.recorded(task.example('train', i))[0] for i in (0, 1)]
  assert [x.aspects for x in found] == [(4.0, 0.5), (None, 1.0)]
  with pytest.raises(ValueError, match="no field of \\('kind',\\) has"):
    PreferenceRows(path=str(path), aspects=('kind',)).num_prompts('train')
  pairs = PreferenceRows(path=str(FOLDER / 'pair.jsonl'), aspects=('a',))
  with pytest.raises(ValueError, match='aspects rate one response'):
    pairs.num_prompts('train')
