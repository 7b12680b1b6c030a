"""Question-answer files: fields, splits, templates, verifiers."""

import dataclasses
import importlib
import json
import pickle
import re

import jax
import numpy as np
import pytest

from configs.methods import grpo
from configs.worlds import bandit
from rl_jax.config import EvaluationConfig
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.overrides import override
from rl_jax.rollouts.prompts import OverlongPromptError, PromptSet
from rl_jax.runs import loop
from rl_jax.runtime import mesh
from rl_jax.serialization import from_json, to_json
from rl_jax.tasks import (
  ChatTemplate,
  PlainTemplate,
  QuestionAnswer,
  render_prompt,
)
from rl_jax.tasks.base import PLACE, SPLITS
from rl_jax.verification.pool import VerifierConfig, VerifierPool


def _write(path, rows):
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  return str(path)


def _numbered(tmp_path, count=20):
  rows = [{'question': f'q{i}', 'answer': i} for i in range(count)]
  return _write(tmp_path / 'rows.jsonl', rows)


def _questions(task, split):
  return [task.example(split, i) for i in range(task.num_prompts(split))]


def test_solved_examples_stand_in_front(tmp_path):
  """They come before the prompt that they answer, or as turns of the chat."""
  task = QuestionAnswer(sources={'train': _numbered(tmp_path)})
  two, three = (task.example('train', i) for i in (2, 3))
  plain = task.with_examples(two, [(three, ' so 3\n')])
  assert plain.prompt == f'{three.prompt} so 3\n\n{two.prompt}'
  assert plain.answer == '2' and plain.id == 2
  assert plain.parts == ('', f'{three.prompt} so 3\n\n', *two.parts)
  chat = dataclasses.replace(task, template=ChatTemplate(prefill='well '))
  two, three = (chat.example('train', i) for i in (2, 3))
  turns = chat.with_examples(two, [(three, 'so 3')]).messages
  assert [turn['content'] for turn in turns] == ['q3', 'well so 3', 'q2']


@pytest.mark.parametrize(
  ('share', 'lines'), [(0.0, 'a'), (0.5, 'a\nb'), (1.0, 'a\nb\nc')]
)
def test_hints_are_shares_of_the_solution(tmp_path, share, lines):
  """At least a line and never the last, which has the answer."""
  rows = [{'question': 'q', 'answer': 'a\nb\nc\n4'}]
  source = _write(tmp_path / 'rows.jsonl', rows)
  task = QuestionAnswer(sources={'train': source}, gold='last_number')
  hinted = task.hinted_by(task.example('train', 0), share)
  assert hinted.prompt == f'Question: q\nHint: {lines}\nAnswer:'


def test_released_formats(tmp_path):
  """GSM8K, MAWPS, SVAMP and MATH rows, by fields only."""
  gsm8k = QuestionAnswer(
    sources={
      'test': _write(
        tmp_path / 'gsm8k.jsonl',
        [{'question': 'How much?', 'answer': '2+3 = <<2+3=5>>5\n#### 1,005'}],
      )
    },
    gold='hash',
  ).example('test', 0)
  assert gsm8k.answer == '1,005'
  assert gsm8k.prompt == 'Question: How much?\nAnswer:'
  assert gsm8k.meta['solution'].startswith('2+3')
  assert gsm8k.meta[PLACE].endswith('gsm8k.jsonl:1')
  mawps = QuestionAnswer(
    sources={
      'train': _write(tmp_path / 'm.jsonl', [{'input': 'a b', 'target': 14.0}])
    },
    question='{input}',
    answer='{target}',
  )
  assert mawps.example('train', 0).answer == '14'
  assert mawps.target(mawps.example('train', 0)) == ' 14'
  svamp = QuestionAnswer(
    sources={
      'test': _write(
        tmp_path / 's.jsonl', [{'Body': 'A.', 'Question': 'B?', 'Answer': 0.5}]
      )
    },
    question='{Body} {Question}',
    answer='{Answer}',
    template=PlainTemplate('{question}'),
  ).example('test', 0)
  assert (svamp.prompt, svamp.answer) == ('A. B?', '0.5')
  maths = QuestionAnswer(
    sources={
      'test': _write(
        tmp_path / 'h.jsonl', [{'problem': 'p', 'answer': r'\frac{1}{2}'}]
      )
    },
    question='{problem}',
    verifier='math',
    extract='boxed',
  )
  example = maths.example('test', 0)
  assert maths.reward(example, r'so \boxed{0.5}')['outcome'] == 1.0
  assert maths.reward(example, r'so \boxed{2}')['outcome'] == 0.0


def test_last_rows_are_held_out(tmp_path):
  task = QuestionAnswer(
    sources={'train': _numbered(tmp_path)},
    hold_out='last',
    num_validation=3,
    num_test=5,
  )
  answers = {s: [e.answer for e in _questions(task, s)] for s in SPLITS}
  assert answers['test'] == [str(i) for i in range(15, 20)]
  assert answers['validation'] == ['12', '13', '14']
  assert answers['train'] == [str(i) for i in range(12)]
  assert [e.id for e in _questions(task, 'test')] == [0, 1, 2, 3, 4]


def test_hash_split_does_not_depend_on_the_order_of_rows(tmp_path):
  rows = [{'question': f'q{i}', 'answer': i} for i in range(40)]
  splits = []
  for name, ordered in (('a.jsonl', rows), ('b.jsonl', rows[::-1])):
    task = QuestionAnswer(
      sources={'train': _write(tmp_path / name, ordered)},
      hold_out='hash',
      num_validation=4,
      num_test=6,
    )
    splits.append({s: {e.answer for e in _questions(task, s)} for s in SPLITS})
  assert splits[0] == splits[1]
  assert [len(splits[0][s]) for s in SPLITS] == [30, 4, 6]
  assert splits[0]['test'] != {str(i) for i in range(34, 40)}


def test_a_split_without_rows_is_empty_and_too_many_held_out_is_an_error(
  tmp_path,
):
  source = _numbered(tmp_path)
  task = QuestionAnswer(sources={'train': source})
  assert task.num_prompts('train') == 20
  assert task.num_prompts('test') == task.num_prompts('validation') == 0
  greedy = QuestionAnswer(
    sources={'train': source}, hold_out='last', num_test=20
  )
  with pytest.raises(ValueError, match='leaves nothing to train on'):
    greedy.num_prompts('train')
  with pytest.raises(ValueError, match='test has its own source'):
    QuestionAnswer(
      sources={'train': source, 'test': source}, hold_out='last', num_test=1
    )


@pytest.mark.parametrize(
  'fields',
  [
    dict(extract='guess'),
    dict(gold='guess'),
    dict(verifier='guess'),
    dict(hold_out='guess'),
    dict(bad_rows='guess'),
    dict(sources={'dev': 'a'}),
    dict(sources={}),
    dict(question='question'),
    dict(num_test=-1),
    dict(last_characters=0),
    dict(last_characters=100),  # extract = 'last_number' has no mark
  ],
)
def test_bad_arguments_are_named(fields):
  with pytest.raises(ValueError, match='|'.join([*fields, 'split'])):
    QuestionAnswer(**{'sources': {'train': 'a'}, **fields})
  with pytest.raises(ValueError, match='question'):
    PlainTemplate('no slot')


@pytest.mark.parametrize(
  ('sources', 'named'),
  [
    (None, r'sources = None is not'),
    ('a.jsonl', r"sources = 'a.jsonl' is not"),
    ({'train': 5}, r"sources\['train'\] = 5 is not the text of one file"),
    ({'train': None}, r"sources\['train'\] = None"),
    ({'test': ['a', 'b']}, r"sources\['test'\] = \['a', 'b'\]"),
  ],
)
def test_sources_are_texts(sources, named):
  with pytest.raises(ValueError, match=rf'QuestionAnswer\.{named}'):
    QuestionAnswer(sources=sources)


def test_a_long_prompt_is_named_by_file_and_line(tmp_path):
  rows = [{'question': 'q'}, {'question': 'q' * 30}]
  rows = [{**row, 'answer': 1} for row in rows]
  source = _write(tmp_path / 'rows.jsonl', rows)
  task = QuestionAnswer(sources={'train': source})
  with pytest.raises(OverlongPromptError, match=r'train\[1\].*rows\.jsonl:2\)'):
    PromptSet(task, 'train', CharTokenizer('Question: Awr\nq'), 25)


class _Tags:
  """A tokenizer whose chat form is easy to read."""

  def chat(self, messages, add_generation_prompt=True, **variables):
    """<role>content ... <assistant>, and what else is asked for."""
    text = ''.join(f'[{k}={v}]' for k, v in variables.items())
    text += ''.join(f'<{m["role"]}>{m["content"]}' for m in messages)
    return text + ('<assistant>' if add_generation_prompt else '')


def test_templates_render(tmp_path):
  """Braces other than the slot are literal; shots come before the question."""
  source = _numbered(tmp_path)
  plain = QuestionAnswer(
    sources={'train': source},
    template=PlainTemplate(r'{question} Use \boxed{}.'),
  )
  assert render_prompt(plain.example('train', 1), None) == r'q1 Use \boxed{}.'
  chat = QuestionAnswer(
    sources={'train': source},
    template=ChatTemplate(
      system='S', user='Q: {question}', prefill='I say ', shots=(('1+1', '2'),)
    ),
  )
  assert render_prompt(chat.example('train', 3), _Tags()) == (
    '<system>S<user>Q: 1+1<assistant>2<user>Q: q3<assistant>I say '
  )
  quick = dataclasses.replace(
    chat, template=ChatTemplate(arguments={'enable_thinking': False})
  )
  text = render_prompt(quick.example('train', 3), _Tags())
  assert text == '[enable_thinking=False]<user>q3<assistant>'
  assert from_json(to_json(quick)) == quick
  path = 'template.arguments'
  assert override(chat, path, "{'a': 1}").template.arguments == {'a': 1}


def test_the_prefill_is_part_of_what_is_judged(tmp_path):
  task = QuestionAnswer(
    sources={'train': _numbered(tmp_path)},
    template=ChatTemplate(prefill='<think>'),
    extract='answer_tags',
    reward_weights={'outcome': 1.0, 'format': 0.5},
  )
  example = task.example('train', 7)
  good = task.reward(example, 'a</think> <answer>7</answer>')
  assert good == {'outcome': 1.0, 'format': 1.0}
  untidy = task.reward(example, '<answer>7.0</answer>')
  assert untidy == {'outcome': 1.0, 'format': 0.0}
  assert task.reward(example, '7') == {'outcome': 0.0, 'format': 0.0}


def test_text_answers(tmp_path):
  source = _write(tmp_path / 'r.jsonl', [{'question': 'q', 'answer': ' yes '}])
  task = QuestionAnswer(
    sources={'train': source}, verifier='text', extract='whole'
  )
  example = task.example('train', 0)
  assert task.reward(example, ' yes\n')['outcome'] == 1.0
  assert task.reward(example, 'yes!')['outcome'] == 0.0


def test_graders_of_released_code(tmp_path):
  """The instruction's own text and boxes outside the window earn nothing."""

  def right(text, answer='12', question='q', **fields):
    path = tmp_path / f'{len(list(tmp_path.iterdir()))}.jsonl'
    path.write_text(json.dumps({'question': question, 'answer': answer}) + '\n')
    task = QuestionAnswer(sources={'train': str(path)}, **fields)
    return task.reward(task.example('train', 0), text)['outcome']

  hashed = {'extract': 'hash_number', 'verifier': 'text'}
  assert right('so #### 12', **hashed) == 1.0
  assert right('so #### 12.0', **hashed) == right('is 12', **hashed) == 0.0
  line = {'extract': 'answer_line', 'last_characters': 300}
  assert right('x\nAnswer: $12$', **line) == 1.0
  assert right('x\nAnswer: 12 or 13', **line) == 0.0
  assert right('Answer: 12' + 300 * 'x', **line) == 0.0
  asked = 'Solve. The last line is "Answer: $Answer".'
  assert right(asked, question=asked, **line) == 0.0
  box = {'extract': 'boxed', 'verifier': 'text', 'last_characters': 100}
  assert right(r'so \boxed{12}', **box) == 1.0
  assert right(r'so \boxed{12}' + 100 * '.', **box) == 0.0
  golds = {'extract': 'answer_tags', 'verifier': 'squad'}
  names = ['New York City', 'NYC']
  assert right('<answer>the N.Y.C.</answer>', names, **golds) == 1.0
  assert right('<answer>New York City, NYC</answer>', names, **golds) == 0.0
  assert right('<answer></answer>', names, **golds) == 0.0


def test_a_quotient_is_not_computed(tmp_path):
  """'decimal' takes the number that 'number' takes, but no '14/2'."""
  task = QuestionAnswer(sources={'train': _numbered(tmp_path)}, clusters=True)
  strict = dataclasses.replace(task, verifier='decimal')
  example = task.example('train', 7)
  for text, right in (('14 / 2', 0), ('14 / 2 = 7', 1), ('7.0', 1), ('8', 0)):
    assert strict.reward(example, text)['outcome'] == right, text
  assert task.reward(example, '14 / 2')['outcome'] == 1

  def cluster(text):
    return strict.reward(example, text)['cluster_id']

  assert cluster('7.0') == cluster('7') != cluster('14/2')


@pytest.mark.parametrize(
  ('name', 'form'),
  [
    ('gsm8k', 'So it is #### {}'),
    ('smollm2_word_problems', ' 2 + 5 = {}'),
    ('smollm2_equations', ' 2 + 5 = {}'),
    ('smollm2_calculator', 'Answer: {}'),
  ],
)
def test_configurations_that_ask_for_a_number_take_no_quotient(
  tmp_path, name, form
):
  """The expression of an answer earns nothing, its value does."""
  module = importlib.import_module(f'configs.{name}')
  task = module.get_config(grpo.get_method()).task
  task = getattr(task, 'task', task)
  row = {'input': 'q', 'target': '7', 'question': 'q', 'answer': '#### 7'}
  source = _write(tmp_path / 'r.jsonl', [row])
  task = dataclasses.replace(
    task, sources={'train': source}, hold_out='none', num_test=0
  )
  example = task.example('train', 0)

  def outcome(text):
    return task.reward(example, form.format(text))['outcome']

  assert outcome('7') == outcome('7.0') == 1.0
  assert outcome('14/2') == outcome('14 / 2') == outcome('8') == 0.0


@pytest.mark.parametrize(
  ('number', 'right'),
  [
    ('9{,}500', '9500'),
    (r'12\!,000', '12000'),
    (r'12\,000', '12000'),
    ('10 000', '10000'),
    ('1.000.000', '1000000'),
    ('3 1/2', '3.5'),
  ],
)
def test_a_part_of_a_number_is_no_answer(tmp_path, number, right):
  """9{,}500 is the number 9500, and never 500."""
  part = re.findall('[0-9]+', number)[-1]
  rows = [{'question': 'q', 'answer': x} for x in (right, part, '0.5')]
  source = _write(tmp_path / 'r.jsonl', rows)
  task = QuestionAnswer(sources={'train': source})
  boxed = dataclasses.replace(task, extract='boxed')
  for form, response in (
    (task, f'in ${number}$.'),
    (boxed, rf'\boxed{{{number}}}'),
  ):
    examples = [form.example('train', i) for i in range(3)]
    found = [form.reward(example, response)['outcome'] for example in examples]
    assert found == [1.0, 0.0, 0.0]


@pytest.mark.parametrize('verifier', ['number', 'decimal', 'math'])
@pytest.mark.parametrize('right', ['0.0000005', '1/1048576', '-1/13983816'])
def test_nothing_is_no_small_number(tmp_path, verifier, right):
  """For probabilities and constants of nature a policy must not write 0."""
  rows = [{'question': 'q', 'answer': right}]
  source = _write(tmp_path / 'r.jsonl', rows)
  task = QuestionAnswer(
    sources={'train': source}, verifier=verifier, extract='whole'
  )

  def reward(text):
    return task.reward(task.example('train', 0), text)['outcome']

  assert [reward(text) for text in ('0', '0.0', '0.000001')] == [0.0] * 3
  decimal = verifier != 'decimal' or '/' not in right
  assert reward(right) == float(decimal)


def test_pickles_without_its_rows(tmp_path):
  """Workers get the task, not the data set."""
  task = QuestionAnswer(sources={'train': _numbered(tmp_path, 2000)})
  task.num_prompts('train')
  pickled = pickle.dumps(task)
  assert len(pickled) < 2000
  assert pickle.loads(pickled) == task


def test_math_verify_is_not_run_without_a_time_limit(tmp_path):
  sources = {'train': _numbered(tmp_path)}
  with pytest.raises(ValueError, match='verifier.num_workers = 0'):
    VerifierPool(QuestionAnswer(sources=sources, verifier='math'), 0)
  VerifierPool(QuestionAnswer(sources=sources), 0).close()


def test_math_verify_in_worker_processes(tmp_path):
  """Its signal-based limits are off; only the pool has a limit."""
  source = _write(
    tmp_path / 'r.jsonl', [{'question': 'q', 'answer': r'\frac{3}{4}'}]
  )
  task = QuestionAnswer(
    sources={'train': source}, verifier='math', extract='boxed'
  )
  example = task.example('train', 0)
  with VerifierPool(task, 1, timeout_seconds=60.0) as pool:
    right, wrong = pool.reward([example] * 2, [r'\boxed{6/8}', r'\boxed{4/3}'])
  assert right.components == {'outcome': 1.0, 'format': 1.0}
  assert wrong.components == {'outcome': 0.0, 'format': 1.0}


def test_clusters_are_answers_of_equal_value(tmp_path):
  """-1 without an answer; what is right is one cluster; no labels needed."""
  task = QuestionAnswer(sources={'train': _numbered(tmp_path)}, clusters=True)
  example = task.example('train', 7)

  def cluster(text):
    return task.reward(example, text)['cluster_id']

  assert cluster('7') == cluster('it is 7.00') == cluster('14/2')
  assert cluster('8') == cluster('so 16/2') != cluster('7')
  assert cluster('none') == -1.0
  assert 0 <= cluster('8') < 2**24 and cluster('8') == np.float32(cluster('8'))
  maths = dataclasses.replace(task, verifier='math', extract='boxed')

  def cluster(text):
    return maths.reward(example, text)['cluster_id']

  assert cluster(r'\boxed{\sqrt{12}}') == cluster(r'\boxed{2\sqrt 3}')
  assert cluster(r'\boxed{7}') == cluster(r'\boxed{x = 7}') != -1.0
  assert cluster('7') == -1.0
  unlabelled = dataclasses.replace(task, answer='0', verifier='text')
  assert unlabelled.example('train', 7).answer == '0'
  assert 'cluster_id' not in dataclasses.replace(task, clusters=False).reward(
    example, '7'
  )


@pytest.mark.slow
@pytest.mark.parametrize('name', ['empo', 'copo', 'seed_grpo'])
def test_methods_that_compare_answers_run_on_own_data(
  tmp_path, name, monkeypatch
):
  """Unlabelled rows of a file and one field of the task."""
  letters = ''.join(sorted({*'Question: Answer:\nq0123456789'}))
  monkeypatch.setattr(QuestionAnswer, 'alphabet', letters, raising=False)
  method = importlib.import_module(f'configs.methods.{name}').get_method()
  config = bandit.get_config(method)
  task = QuestionAnswer(
    sources={'train': _numbered(tmp_path)}, answer='0', clusters=True
  )
  rollout = dataclasses.replace(config.rollout, max_prompt_tokens=32)
  config = dataclasses.replace(
    config,
    task=task,
    rollout=rollout,
    iterations=2,
    evaluation=EvaluationConfig(),
    verifier=VerifierConfig(num_workers=0),
  )
  with jax.set_mesh(mesh.make_mesh(mesh.MeshConfig(), jax.devices()[:1])):
    row = loop.Trainer(config, str(tmp_path / 'run')).run()
  assert row['step'] == 2 and np.isfinite(row['train/loss'])
  no_clusters = dataclasses.replace(task, clusters=False)
  config = dataclasses.replace(config, task=no_clusters)
  with (
    jax.set_mesh(mesh.make_mesh(mesh.MeshConfig(), jax.devices()[:1])),
    pytest.raises(ValueError, match='clusters=True'),
  ):
    loop.Trainer(config, str(tmp_path / 'other')).run()
