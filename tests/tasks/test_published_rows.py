"""Rows as verl and TRL publish them: conversations, fields of fields, lists.

The shapes are those of verl's examples/data_preprocess (gsm8k.py,
math_dataset.py, preprocess_search_r1_dataset.py, gsm8k_multiturn_w_tool.py) and
of TRL's examples/datasets (deepmath_103k.py, ultrafeedback-prompt.py, tldr.py).
"""

import dataclasses
import datetime
import itertools
import json
import pickle

import pytest

from rl_jax.serialization import from_json, to_json
from rl_jax.tasks import (
  ChatTemplate,
  Mixture,
  MixturePart,
  PlainTemplate,
  PreferenceRows,
  PromptResponse,
  QuestionAnswer,
  RewardFunctions,
)
from rl_jax.tasks.base import COLUMNS
from rl_jax.tasks.sources import BadRowError

pa = pytest.importorskip('pyarrow', reason="needs the extra 'data'")
pq = pytest.importorskip('pyarrow.parquet', reason="needs the extra 'data'")

ASKED = 'How many is 3 and 4? Let\'s think and answer after "####".'
USER = {'role': 'user', 'content': ASKED}
SYSTEM = {'role': 'system', 'content': 'You are a helpful assistant.'}


def verl(truth, prompt=(USER,), **extra):
  """A row of verl."""
  return {
    'data_source': 'openai/gsm8k',
    'prompt': list(prompt),
    'ability': 'math',
    'reward_model': {'style': 'rule', 'ground_truth': truth},
    'extra_info': {'split': 'train', 'index': 0, **extra},
  }


GSM8K = verl('7', answer='3+4=7\n#### 7', question='How many is 3 and 4?')
SEARCH = verl({'target': ['Paris', 'the city of Paris']}, (SYSTEM, USER))
TOOLS = verl(
  '7',
  (SYSTEM, USER),
  need_tools_kwargs=True,
  tools_kwargs={'calc': {'create_kwargs': {'ground_truth': '7'}}},
)
DEEPMATH = {
  'prompt': [{'content': 'Compute 1/2.', 'role': 'user'}],
  'solution': '$\\frac{1}{2}$',
}
CHAT = ChatTemplate()
TRUTH = '{reward_model.ground_truth}'


def write(path, rows):
  """A file of the kind that the name says."""
  if path.suffix == '.parquet':
    pq.write_table(pa.Table.from_pylist(rows), path)
  else:
    path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  return str(path)


@pytest.fixture(params=['jsonl', 'parquet'])
def save(request, tmp_path):
  """Writes rows to a new file of either kind: a file is read once."""
  numbers = itertools.count()

  def name():
    return f'rows{next(numbers)}.{request.param}'

  return lambda rows: write(tmp_path / name(), rows)


def read(path, **fields):
  fields = {'question': '{prompt}', 'answer': TRUTH, 'template': CHAT} | fields
  return QuestionAnswer(sources={'train': path}, **fields)


def outcome(task, text):
  return task.reward(task.example('train', 0), text)['outcome']


def test_lists_in_json_files_and_places_in_brackets(tmp_path):
  """Files that hold one list; '[0]' is a place, as '.0' is."""
  path = tmp_path / 'test.json'
  path.write_text('\ufeff ' + json.dumps([GSM8K, GSM8K], indent=1))
  task = read(str(path), question='{prompt[0].content}')
  assert task.num_prompts('train') == 2
  example = task.example('train', 1)
  assert example.meta['question'] == ASKED
  assert example.meta['place'] == f'{path} row 2'
  parquet = write(tmp_path / 'rows.parquet', [GSM8K])
  task = read(parquet, question='Q: {prompt[0].content}')
  assert task.example('train', 0).meta['question'] == f'Q: {ASKED}'


@pytest.mark.parametrize(
  ('text', 'message'),
  [
    ('[{"prompt": "a"}, {]', r'test.json:1: not valid JSON'),
    ('[{"prompt": "a"}', r'test.json:1: not valid JSON'),
    ('[]', r'test.json: no usable row'),
    ('[5]', r'test.json row 1: a JSON int, not an object'),
    (
      '[{"prompt": "a", "answer": "1"}, {"question": "b"}]',
      r"test.json row 2: field 'prompt' is missing; present: \['question'\]",
    ),
  ],
)
def test_bad_lists_are_named(tmp_path, text, message):
  path = tmp_path / 'test.json'
  path.write_text(text)
  task = read(str(path), answer='{answer}')
  with pytest.raises(ValueError, match=message):
    task.num_prompts('train')


@pytest.mark.parametrize('name', ['prompt[1].content', 'promt[0].content'])
def test_a_place_that_is_not_there_is_named(save, name):
  task = read(save([GSM8K]), question=f'{{extra_info.index}} {{{name}}}')
  with pytest.raises(BadRowError, match='is missing'):
    task.num_prompts('train')


def test_rows_that_papers_publish(save, tmp_path):
  """The schemas of files that recipes read, each with its gold answer."""
  boxed = {'extract': 'boxed', 'verifier': 'text'}
  rows = (
    ({'prompt': 'P', 'answer': '7', 'source': 's', 'id': 1}, '{answer}'),
    ({'prompt': 'P', 'ground_truth': '7', 'tag': 't'}, '{ground_truth}'),
    ({'prompt': 'P', 'final_answer': ['7']}, '{final_answer}'),
    ({'prompt': 'P', 'reward_model': {'ground_truth': ['7']}}, TRUTH),
    ({'prompt': [SYSTEM, USER], 'answer': 7.0}, '{answer}'),
  )
  for row, answer in rows:
    path = save([row])
    listed = tmp_path / f'{answer.strip("{}")}.json'
    listed.write_text(json.dumps([row]))
    for place in (path, str(listed)):
      task = read(place, answer=answer, **boxed)
      assert outcome(task, r'so \boxed{7}') == 1.0
      assert outcome(task, r'so \boxed{8}') == 0.0


def test_a_prompt_of_turns_is_the_prompt(save):
  """E0: the turns as they are; the last one is the question."""
  task = read(save([GSM8K, GSM8K]))
  example = task.example('train', 1)
  assert example.messages == (USER,) and example.prompt == ASKED
  assert example.answer == '7' and example.meta['question'] == ASKED
  assert outcome(task, 'so 7') == 1.0 and outcome(task, 'so 8') == 0.0
  assert read(save([TOOLS])).example('train', 0).messages == (SYSTEM, USER)


def test_fields_of_fields(save):
  """In a template with other text, as the whole of one, and of a list."""
  rows = [GSM8K]
  task = read(
    save(rows),
    question='{extra_info.question} ({ability})',
    answer='{extra_info.answer}',
    gold='hash',
    template=PlainTemplate('{question}'),
    id_field='extra_info.index',
  )
  assert task.example('train', 0).prompt == 'How many is 3 and 4? (math)'
  assert task.example('train', 0).answer == '7'
  task = read(save(rows), question='{prompt.0.content}')
  assert task.example('train', 0).messages == (USER,)
  pairs = PromptResponse(
    path=save(rows), prompt='extra_info.question', response='extra_info.answer'
  )
  example = pairs.example('train', 0)
  assert example.prompt == 'How many is 3 and 4?'
  assert example.answer == '3+4=7\n#### 7'


def test_a_field_with_the_whole_name_comes_first(save):
  row = {'a.b': 'whole', 'a': {'b': 'part'}, 'answer': 1}
  task = read(
    save([row]), question='{a.b}', answer='{answer}', template=PlainTemplate()
  )
  assert 'whole' in task.example('train', 0).prompt


@pytest.mark.parametrize(
  ('name', 'message'),
  [
    ('reward_model.truth', r"'reward_model' has \['ground_truth', 'style'\]"),
    ('reward.ground_truth', r"missing; present: \['ability', 'data_source'"),
    ('ability.x', "'ability' is str, which has no fields"),
    ('prompt.3', "'prompt' is a list of 1"),
    ('reward_model', "is dict, .*; its fields have names as 'reward_model.sty"),
  ],
)
def test_a_field_that_is_not_there_is_named(save, name, message):
  task = read(save([GSM8K]), answer='{' + name + '}')
  with pytest.raises(BadRowError, match=f'field {name!r} .*{message}'):
    task.num_prompts('train')


@pytest.mark.parametrize(
  ('row', 'answer', 'verifier', 'right'),
  [
    (verl(['72', '27']), TRUTH, 'number', ['72', '27.0', 'so 27']),
    (verl([72]), TRUTH, 'number', ['72']),
    (
      SEARCH,
      '{reward_model.ground_truth.target}',
      'text',
      ['Paris', 'the city of Paris'],
    ),
  ],
)
def test_one_of_several_right_answers_suffices(
  save, row, answer, verifier, right
):
  task = read(
    save([row]),
    answer=answer,
    verifier=verifier,
    extract='whole' if verifier == 'text' else 'last_number',
    clusters=True,
  )
  example = task.example('train', 0)
  found = [task.reward(example, text) for text in (*right, '99')]
  assert [x['outcome'] for x in found] == [1.0] * len(right) + [0.0]
  # All right answers are one cluster.
  assert len({x['cluster_id'] for x in found}) == 2


@pytest.mark.parametrize(
  ('truth', 'message'),
  [
    ([], "'reward_model.ground_truth' is a list without an answer"),
    (['7', 'many'], "no right answer for verifier 'number' in 'many'"),
    (['7', None], "field 'reward_model.ground_truth.1' is NoneType"),
  ],
)
def test_every_right_answer_must_be_one(tmp_path, truth, message):
  path = write(tmp_path / 'rows.jsonl', [verl('1'), verl(truth)])
  with pytest.raises(BadRowError, match=f'jsonl:2: .*{message}'):
    read(path).num_prompts('train')
  assert read(path, bad_rows='skip').num_prompts('train') == 1


def test_trl_rows(save):
  """DeepMath with its right answers; prompts without any."""
  task = read(
    save([DEEPMATH]), answer='{solution}', verifier='math', extract='boxed'
  )
  assert outcome(task, r'\boxed{\frac{1}{2}}') == 1.0
  assert outcome(task, r'\boxed{2}') == 0.0
  task = read(save([{'prompt': [USER]}]), answer='', clusters=True)
  example = task.example('train', 0)
  assert example.messages == (USER,) and example.answer == ''
  first, second = (task.reward(example, text) for text in ('7', '8'))
  assert first['outcome'] == second['outcome'] == 0.0
  assert first['cluster_id'] != second['cluster_id']
  with pytest.raises(ValueError, match="answer = '': the rows have no targets"):
    task.target(example)


def test_without_right_answers_there_is_nothing_to_compare(tmp_path):
  with pytest.raises(ValueError, match="answer = '', but verifier = 'express"):
    read('x.jsonl', answer='', verifier='expression')


def test_tools_are_variables_of_the_template(save):
  """Also of a table, of which only the named columns are read."""
  tool = {'type': 'function', 'function': {'name': 'calc'}}
  row = GSM8K | {'tools': [tool], 'chat_template_kwargs': {'thinking': True}}
  template = ChatTemplate(arguments={'day': 1})
  example = read(save([row]), template=template).example('train', 0)
  expected = {'tools': [tool], 'thinking': True, 'day': 1}
  assert example.arguments == expected


def test_templates_surround_conversations(save):
  """The user's text around the last turn; system and shots in front of it."""
  template = ChatTemplate(
    user='Q: {question}', system='Be brief.', shots=(('1', 'one'),)
  )
  task = read(save([GSM8K]), template=template)
  example = task.example('train', 0)
  assert [m['content'] for m in example.messages] == [
    *('Be brief.', 'Q: 1', 'one'),
    f'Q: {ASKED}',
  ]
  hinted = task.hinted(
    dataclasses.replace(example, meta={**example.meta, 'solution': 'a\nb'})
  )
  assert hinted.messages[:-1] == example.messages[:-1]
  assert hinted.messages[-1]['content'] == f'Q: {ASKED}\nHint: a'
  shown = task.with_examples(example, [(example, 'seven')])
  contents = [m['content'] for m in shown.messages]
  assert contents[3:] == [f'Q: {ASKED}', 'seven', f'Q: {ASKED}']


def test_two_system_messages_are_an_error(save):
  task = read(save([TOOLS]), template=ChatTemplate(system='Be brief.'))
  with pytest.raises(ValueError, match=r"rows.*:1: ChatTemplate.system = 'Be"):
    task.example('train', 0)


def test_a_conversation_needs_a_chat_template(save):
  task = read(save([GSM8K]), template=PlainTemplate())
  with pytest.raises(ValueError, match='rows.*:1: the prompt is a conversat'):
    task.example('train', 0)
  pairs = PromptResponse(
    path=save([GSM8K]),
    response='ability',
    template=PlainTemplate(),
  )
  with pytest.raises(ValueError, match='PromptResponse.template: .*rows.*:1'):
    pairs.example('train', 0)


def test_prompt_response_takes_conversations(save):
  task = PromptResponse(path=save([TOOLS]), response='ability')
  example = task.example('train', 0)
  assert example.messages == (SYSTEM, USER) and example.prompt == ASKED
  (logged,) = task.recorded(example)
  assert logged.messages == ({'role': 'assistant', 'content': 'math'},)


IMAGE = {'type': 'image', 'image': 'x.png'}


@pytest.mark.parametrize(
  ('changes', 'kind', 'message'),
  [
    ({'prompt': []}, 'empty_prompt', 'has no messages'),
    ({'prompt': ['text']}, 'wrong_type', 'message 0 .* is str, no object'),
    (
      {'prompt': [USER, {'role': 'assistant', 'content': 'I'}]},
      'wrong_roles',
      "ends with a message of the role 'assistant'",
    ),
    ({'prompt': [{'role': 'bot', 'content': 'x'}]}, 'wrong_roles', "'bot'"),
    (
      {'prompt': [{'role': 'user', 'content': [IMAGE]}]},
      'wrong_type',
      'only .* can be read',
    ),
    ({'images': ['x.png']}, 'images', 'only text can be read'),
    ({'prompt': [{'role': 'user', 'content': ' '}]}, 'empty_question', ''),
    ({'tools': 'calc'}, 'wrong_type', "'tools' is not JSON"),
  ],
)
def test_bad_conversations(save, changes, kind, message):
  task = read(save([GSM8K | changes]))
  with pytest.raises(BadRowError, match=f'rows.*:1: .*{message}') as error:
    task.num_prompts('train')
  assert error.value.kind == kind


ODD = {
  'when': datetime.date(2024, 5, 1),
  'raw': b'\xff\x00',
  'none': None,
  'deep': [{'a': [1, 2.5]}],
}


def test_rewards_are_given_the_columns(tmp_path):
  """E0: values of any type; what is read of a table is what is asked for."""
  row = GSM8K | ODD
  path = write(tmp_path / 'rows.parquet', [row])
  assert COLUMNS not in read(path).example('train', 0).meta
  task = read(path, columns=('*',))
  assert task.example('train', 0).meta[COLUMNS] == row
  task = read(path, columns=('when', 'data_source'))
  found = task.example('train', 0).meta[COLUMNS]
  assert found == {'when': ODD['when'], 'data_source': 'openai/gsm8k'}
  assert from_json(to_json(task)) == task
  with pytest.raises(BadRowError, match="field 'whenn' is missing; present"):
    read(path, columns=('whenn',)).num_prompts('train')


def function(example, response):
  """A reward function of a user."""
  return float(response == example.meta[COLUMNS]['extra_info']['question'])


def test_functions_have_all_columns_of_every_task_of_rows(tmp_path):
  """Their tasks keep them, also within others; configurations do not change."""
  path = write(tmp_path / 'rows.parquet', [GSM8K])
  pairs = PromptResponse(path=path, response='ability')
  texts = write(
    tmp_path / 'tldr.jsonl', [{'prompt': 'a', 'completion': 'b', 'id': 4}]
  )
  mixture = Mixture(
    (
      MixturePart('verl', read(path)),
      MixturePart('own', read(path, columns=('ability',))),
      MixturePart('pairs', pairs),
      MixturePart('tldr', PreferenceRows(path=texts)),
    )
  )
  task = RewardFunctions(mixture, {function: 1.0})
  assert task.task is mixture and to_json(task).count('"columns": null') == 3
  metas = [task.example('train', i).meta for i in range(4)]
  expected = [GSM8K, {'ability': 'math'}, GSM8K]
  assert [meta[COLUMNS] for meta in metas[:3]] == expected
  assert metas[3][COLUMNS]['id'] == 4
  again = pickle.loads(pickle.dumps(task))
  assert again == task and again.example('train', 0).meta == metas[0]
  example = task.example('train', 0)
  found = task.reward(example, 'How many is 3 and 4?')
  assert found['function'] == 1.0 and found['outcome'] == 0.0
