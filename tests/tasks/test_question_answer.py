"""Question-answer files: fields, splits, templates, all kinds of bad rows."""

import json
import logging
import os
import pickle
import subprocess
import sys

import pytest

from rl_jax.tasks import (
  ChatTemplate,
  PlainTemplate,
  QuestionAnswer,
  render_prompt,
)
from rl_jax.tasks.base import SPLITS
from rl_jax.verification import VerifierPool


def _write(path, rows):
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  return str(path)


def _numbered(tmp_path, count=20):
  rows = [{'question': f'q{i}', 'answer': i} for i in range(count)]
  return _write(tmp_path / 'rows.jsonl', rows)


def _questions(task, split):
  return [task.example(split, i) for i in range(task.num_prompts(split))]


def test_released_formats(tmp_path):
  """GSM8K, MAWPS, SVAMP and MATH rows, by fields alone."""
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
  assert gsm8k.meta['where'].endswith('gsm8k.jsonl:1')
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
  assert maths.score(example, r'so \boxed{0.5}')['outcome'] == 1.0
  assert maths.score(example, r'so \boxed{2}')['outcome'] == 0.0


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


BAD_LINES = [
  ('malformed', b'{"question": "q", '),
  ('malformed', b'[' * 100_000),
  ('wrong_type', b'[1, 2]'),
  ('wrong_type', b'{"question": ["q"], "answer": 1}'),
  ('wrong_type', b'{"question": "q", "answer": true}'),
  ('wrong_type', b'{"question": "q", "answer": null}'),
  ('missing_field', b'{"question": "q"}'),
  ('missing_field', b'{"answer": 1}'),
  ('invalid_utf8', b'{"question": "q\xff", "answer": 1}'),
  ('empty_question', b'{"question": " \\n", "answer": 1}'),
  ('unparsable_answer', b'{"question": "q", "answer": "many"}'),
  ('unparsable_answer', b'{"question": "q", "answer": NaN}'),
  ('unparsable_answer', b'{"question": "q", "answer": ""}'),
  ('duplicate_id', b'{"question": "q", "answer": 1, "id": "first"}'),
  ('too_long', b'{"question": "' + b'x' * 300_000 + b'", "answer": 1}'),
]


@pytest.mark.parametrize(('kind', 'line'), BAD_LINES)
def test_bad_rows_are_named_or_counted(tmp_path, caplog, kind, line):
  """Line 3, after a blank line, is bad; the rows around it are good."""
  path = tmp_path / 'rows.jsonl'
  path.write_bytes(
    b'\xef\xbb\xbf{"question": "a", "answer": 1, "id": "first"}\n\n'
    + line
    + b'\n{"question": "b", "answer": 2, "id": "last"}'
  )
  common = dict(sources={'train': str(path)}, max_row_bytes=200_000)
  if kind == 'duplicate_id' or b'"id"' in line:
    common['id_field'] = 'id'
  with pytest.raises(ValueError, match=r'rows\.jsonl:3: ') as error:
    QuestionAnswer(**common).num_prompts('train')
  assert error.value.kind == kind
  task = QuestionAnswer(**common, bad_rows='skip')
  caplog.set_level(logging.WARNING)
  assert [e.answer for e in _questions(task, 'train')] == ['1', '2']
  assert task.skipped('train') == task.skipped('test') == {kind: 1}
  assert 'rows.jsonl:3: ' in caplog.text


@pytest.mark.parametrize('content', ['', '\n\n', '{"question": "q"}\n'])
@pytest.mark.parametrize('policy', ['skip', 'error'])
def test_a_file_without_usable_rows_is_an_error(tmp_path, content, policy):
  path = tmp_path / 'empty.jsonl'
  path.write_text(content)
  task = QuestionAnswer(sources={'train': str(path)}, bad_rows=policy)
  with pytest.raises(ValueError, match='empty.jsonl'):
    task.num_prompts('train')


def test_a_missing_file_is_named(tmp_path):
  task = QuestionAnswer(sources={'train': str(tmp_path / 'none.jsonl')})
  with pytest.raises(FileNotFoundError, match='none.jsonl'):
    task.num_prompts('train')


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
    dict(num_test=-1),
  ],
)
def test_bad_arguments_are_named(fields):
  with pytest.raises(ValueError, match='|'.join([*fields, 'split'])):
    QuestionAnswer(**{'sources': {'train': 'a'}, **fields})
  with pytest.raises(ValueError, match='question'):
    PlainTemplate('no slot')


class _Tags:
  """A tokenizer whose chat form is easy to read."""

  def chat(self, messages, add_generation_prompt=True):
    """<role>content ... <assistant>."""
    text = ''.join(f'<{m["role"]}>{m["content"]}' for m in messages)
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


def test_the_prefill_is_part_of_what_is_judged(tmp_path):
  task = QuestionAnswer(
    sources={'train': _numbered(tmp_path)},
    template=ChatTemplate(prefill='<think>'),
    extract='answer_tags',
    reward_weights={'outcome': 1.0, 'format': 0.5},
  )
  example = task.example('train', 7)
  good = task.score(example, 'a</think> <answer>7</answer>')
  assert good == {'outcome': 1.0, 'format': 1.0}
  untidy = task.score(example, '<answer>7.0</answer>')
  assert untidy == {'outcome': 1.0, 'format': 0.0}
  assert task.score(example, '7') == {'outcome': 0.0, 'format': 0.0}


def test_text_answers(tmp_path):
  source = _write(tmp_path / 'r.jsonl', [{'question': 'q', 'answer': ' yes '}])
  task = QuestionAnswer(
    sources={'train': source}, verifier='text', extract='whole'
  )
  example = task.example('train', 0)
  assert task.score(example, ' yes\n')['outcome'] == 1.0
  assert task.score(example, 'yes!')['outcome'] == 0.0


def test_pickles_without_its_rows(tmp_path):
  """Workers get the task, not the data set."""
  task = QuestionAnswer(sources={'train': _numbered(tmp_path, 2000)})
  task.num_prompts('train')
  pickled = pickle.dumps(task)
  assert len(pickled) < 2000
  assert pickle.loads(pickled) == task


def test_math_verify_in_worker_processes(tmp_path):
  """Its signal-based limits are off; the pool's limit is the only one."""
  source = _write(
    tmp_path / 'r.jsonl', [{'question': 'q', 'answer': r'\frac{3}{4}'}]
  )
  task = QuestionAnswer(
    sources={'train': source}, verifier='math', extract='boxed'
  )
  example = task.example('train', 0)
  with VerifierPool(task, 1, timeout_seconds=60.0) as pool:
    right, wrong = pool.score([example] * 2, [r'\boxed{6/8}', r'\boxed{4/3}'])
  assert right.components == {'outcome': 1.0, 'format': 1.0}
  assert wrong.components == {'outcome': 0.0, 'format': 1.0}


_TFDS = """
import sys
import numpy as np
import tensorflow_datasets as tfds
from rl_jax.tasks import QuestionAnswer

class Toy(tfds.core.GeneratorBasedBuilder):
  VERSION = tfds.core.Version('1.0.0')

  def _info(self):
    return tfds.core.DatasetInfo(
      builder=self,
      features=tfds.features.FeaturesDict(
        {'question': tfds.features.Text(),
         'answer': tfds.features.Scalar(dtype=np.int64)}),
      disable_shuffling=True)

  def _split_generators(self, _):
    return {'train': self._generate_examples(20),
            'main': self._generate_examples(3)}

  def _generate_examples(self, count):
    for i in range(count):
      yield i, {'question': f'q\\u00e9{i}', 'answer': i}

builder = Toy(data_dir=sys.argv[1], file_format='array_record')
builder.download_and_prepare()
source = f'tfds:{builder.data_dir}'
task = QuestionAnswer(sources={'train': source, 'test': source + '@main'},
                      hold_out='last', num_validation=5)
assert [task.num_prompts(s) for s in ('train', 'validation', 'test')] == [
    15, 5, 3]
example = task.example('validation', 1)
assert (example.prompt, example.answer) == (
    'Question: q\\u00e916\\nAnswer:', '16'), example
assert example.meta['where'].endswith('@train row 16')
try:
  QuestionAnswer(sources={'train': source + '@none'}).num_prompts('train')
except ValueError as error:
  assert 'cannot be read' in str(error)
else:
  raise AssertionError('an unknown split was read')
assert 'tensorflow' not in sys.modules
"""


def test_tfds_array_record_without_tensorflow(tmp_path):
  """Written and read in a process of its own, with warnings as errors."""
  pytest.importorskip('array_record', reason='needs array_record')
  script = tmp_path / 'script.py'
  script.write_text(_TFDS)
  command = [sys.executable, str(script), str(tmp_path)]
  done = subprocess.run(
    command, capture_output=True, text=True, env=_environment()
  )
  assert done.returncode == 0, done.stderr


def _environment():
  root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
  return {**os.environ, 'PYTHONPATH': root}
