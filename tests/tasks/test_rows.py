"""Reading rows: every kind of bad row, and ArrayRecord without TensorFlow."""

import json
import logging
import os
import subprocess
import sys

import pytest

from rl_jax.tasks import (
  PreferenceRows,
  PromptResponse,
  QuestionAnswer,
  base,
  rows,
)
from rl_jax.tasks.sources import BadRowError


def _examples(task, split):
  return [task.example(split, i) for i in range(task.num_prompts(split))]


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
  ('wrong_type', b'{"question": "q", "answer": NaN}'),
  ('wrong_type', b'{"question": NaN, "answer": 1}'),
  ('wrong_type', b'{"question": "q", "answer": 1e999}'),
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
  assert [e.answer for e in _examples(task, 'train')] == ['1', '2']
  assert task.skipped('train') == task.skipped('test') == {kind: 1}
  assert 'rows.jsonl:3: ' in caplog.text


NAMES = ('input-text', 'Full Question', 'meta.question', 'Which?', 'é')


@pytest.mark.parametrize('name', NAMES)
def test_fields_may_have_any_name(tmp_path, name):
  path = tmp_path / 'rows.jsonl'
  path.write_text(json.dumps({name: 'q', 'the answer': 1, 'the id': 'x'}))
  task = QuestionAnswer(
    sources={'train': str(path)},
    question='{' + name + '}',
    answer='{the answer}',
    id_field='the id',
  )
  example = task.example('train', 0)
  assert (example.prompt, example.answer) == ('Question: q\nAnswer:', '1')
  pairs = PromptResponse(path=str(path), prompt=name, response='the answer')
  example = pairs.example('train', 0)
  assert (example.prompt, example.answer) == ('q', '1')
  missing = PromptResponse(path=str(path), prompt='a-b', response=name)
  with pytest.raises(BadRowError, match="'a-b' is missing; present: "):
    missing.num_prompts('train')


@pytest.mark.parametrize(
  ('template', 'filled'),
  [
    ('{"a": "{q}"}', '{"a": "Q"}'),
    (r'{q} as \boxed{}', r'Q as \boxed{}'),
    (r'{q} as \boxed{your answer}', r'Q as \boxed{your answer}'),
    (r'\boxed{{q}}', r'\boxed{Q}'),
    ('{q} of {1, 2} or {3-4}', 'Q of {1, 2} or {3-4}'),
    ('0', '0'),
  ],
)
def test_other_braces_are_literal(template, filled):
  assert rows.fill(template, {'q': 'Q'}, 'here') == filled


@pytest.mark.parametrize(
  ('template', 'name'),
  [
    ('{q} {r}', 'r'),
    (r'{q} \frac{r}', 'r'),
    ('{q} {Full Question}', 'Full Question'),
    ('{q} {meta.question}', 'meta.question'),
    ('{input-text}', 'input-text'),
    ('{Which?}', 'Which?'),
  ],
)
def test_a_field_that_is_missing_is_named(template, name):
  with pytest.raises(BadRowError) as error:
    rows.fill(template, {'q': 'Q'}, 'here')
  assert error.value.kind == 'missing_field'
  assert f"field {name!r} is missing; present: ['q']" in str(error.value)


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


CSV_ROWS = [
  b'"one, ""two""\n3",\xc3\xa9',
  b'',
  b'plain,4',
]


@pytest.mark.parametrize('end', [b'\n', b'\r\n'])
def test_rows_of_csv_are_texts(tmp_path, end):
  """Quotes, commas and line breaks in values; the mark of Excel in front."""
  path = tmp_path / 'rows.csv'
  path.write_bytes(end.join([b'\xef\xbb\xbfquestion,answer', *CSV_ROWS]))
  task = QuestionAnswer(
    sources={'train': str(path)}, question='{question}', verifier='text'
  )
  found = [(e.meta['question'], e.answer) for e in _examples(task, 'train')]
  assert found == [('one, "two"\n3', 'é'), ('plain', '4')]
  places = [e.meta[base.PLACE] for e in _examples(task, 'train')]
  assert places == [f'{path}:2', f'{path}:5']
  assert rows.is_source(str(path))


def test_columns_between_tabs(tmp_path):
  path = tmp_path / 'pairs.tsv'
  path.write_text('prompt\tchosen\trejected\na,b\tc\td\n')
  task = PreferenceRows(path=str(path))
  assert task.example('train', 0).prompt == 'a,b'
  assert [x.text for x in task.recorded(task.example('train', 0))] == ['c', 'd']


@pytest.mark.parametrize(
  ('kind', 'line', 'message'),
  [
    (
      'malformed',
      b'a,1,2',
      r"3 values, but 2 columns \['question', 'answer'\]",
    ),
    ('malformed', b'a', '1 values, but 2 columns'),
    ('invalid_utf8', b'q\xff,1', 'surrogates not allowed'),
    ('too_long', b'x' * 150_000 + b',1', 'more than 100000 bytes'),
    ('too_long', b'x' * 300_000 + b',1', 'more than 100000 bytes'),
    ('malformed', b'"a"b,1', 'expected after'),
    ('unparsable_answer', b'q,many', 'no right answer'),
  ],
)
def test_bad_rows_of_csv(tmp_path, kind, line, message):
  """Line 3 of the file; the rows around it are good."""
  path = tmp_path / 'rows.csv'
  path.write_bytes(b'question,answer\na,1\n' + line + b'\nb,2\n')
  common = dict(sources={'train': str(path)}, max_row_bytes=100_000)
  with pytest.raises(BadRowError, match=rf'rows\.csv:3: .*{message}') as error:
    QuestionAnswer(**common).num_prompts('train')
  assert error.value.kind == kind
  task = QuestionAnswer(**common, bad_rows='skip')
  assert [e.answer for e in _examples(task, 'train')] == ['1', '2']
  assert task.skipped('train') == {kind: 1}


def test_a_quote_that_is_not_closed(tmp_path):
  """It takes the rest of the file, which is not lost silently."""
  path = tmp_path / 'rows.csv'
  path.write_text('question,answer\na,1\nb,"2\n' + 'c,3\n' * 9)
  task = QuestionAnswer(sources={'train': str(path)}, verifier='text')
  with pytest.raises(BadRowError, match='rows.csv:3: unexpected end of data'):
    task.num_prompts('train')


@pytest.mark.parametrize(
  'content', ['', 'a,a\n1,2\n', 'a,\n1,2\n', '\n1,2\n', '"a"b\n']
)
def test_csv_without_names_of_columns(tmp_path, content):
  path = tmp_path / 'rows.csv'
  path.write_text(content)
  task = QuestionAnswer(sources={'train': str(path)})
  with pytest.raises(ValueError, match='rows.csv'):
    task.num_prompts('train')


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
assert example.meta['place'].endswith('@train row 16')
try:
  QuestionAnswer(sources={'train': source + '@none'}).num_prompts('train')
except ValueError as error:
  assert 'cannot be read' in str(error)
else:
  raise AssertionError('an unknown split was read')
assert 'tensorflow' not in sys.modules
"""


def test_tfds_array_record_without_tensorflow(tmp_path):
  """Written and read in its own process, with warnings as errors."""
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
