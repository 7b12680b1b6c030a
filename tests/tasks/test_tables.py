"""Parquet and Arrow rows: the same checks, folders and splits."""

import json
import sys

import pytest

from rl_jax.tasks import PromptResponse, QuestionAnswer, tables
from rl_jax.tasks.base import PLACE
from rl_jax.tasks.rows import is_source

pa = pytest.importorskip('pyarrow', reason="needs the extra 'data'")
pq = pytest.importorskip('pyarrow.parquet', reason="needs the extra 'data'")

ROWS = [{'question': f'q{i}é', 'answer': i, 'other': [i]} for i in range(600)]


def stream(path, rows, batch=100):
  """Writes rows as `datasets` does."""
  table = pa.Table.from_pylist(rows)
  with pa.ipc.new_stream(str(path), table.schema) as out:
    out.write_table(table, max_chunksize=batch)


def saved(folder, shards):
  """A folder as save_to_disk writes it."""
  folder.mkdir(parents=True)
  names = [f'data-{i:05}-of-{len(shards):05}.arrow' for i in range(len(shards))]
  for name, rows in zip(names, shards, strict=True):
    stream(folder / name, rows)
  state = {'_data_files': [{'filename': n} for n in names], '_split': 'train'}
  (folder / 'state.json').write_text(json.dumps(state))
  (folder / 'dataset_info.json').write_text('{}')
  return folder


def questions(source, split='train', **fields):
  task = QuestionAnswer(sources={split: str(source)}, **fields)
  return [task.example(split, i) for i in range(task.num_prompts(split))]


def write_parquet(path, rows):
  path.parent.mkdir(parents=True, exist_ok=True)
  pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=70)
  return path


def test_every_form_gives_the_rows_of_jsonl(tmp_path):
  """Examples differ in their place only, which names file and row."""
  lines = tmp_path / 'rows.jsonl'
  lines.write_text(''.join(json.dumps(row) + '\n' for row in ROWS))
  stream(tmp_path / 'rows.arrow', ROWS)
  with pa.ipc.new_file(
    str(tmp_path / 'file.arrow'), pa.Table.from_pylist(ROWS).schema
  ) as out:
    out.write_table(pa.Table.from_pylist(ROWS))
  write_parquet(tmp_path / 'hub/data/train-00000-of-00002.parquet', ROWS[:250])
  write_parquet(tmp_path / 'hub/data/train-00001-of-00002.parquet', ROWS[250:])
  write_parquet(tmp_path / 'hub/data/test-00000-of-00001.parquet', ROWS[:3])
  write_parquet(tmp_path / 'auto/default/train/0000.parquet', ROWS)
  write_parquet(tmp_path / 'auto/default/dev/0000.parquet', ROWS[:2])
  saved(tmp_path / 'saved', [ROWS[:1], ROWS[1:]])
  saved(tmp_path / 'dict/train', [ROWS])
  (tmp_path / 'dict/dataset_dict.json').write_text('{"splits": ["train"]}')
  expected = [(e.prompt, e.answer) for e in questions(lines)]
  assert len(expected) == 600
  for source in (
    *('rows.arrow', 'file.arrow', 'hub', 'auto', 'saved', 'dict'),
    *('hub/data/train-00000-of-00002.parquet', 'hub@train'),
  ):
    found = questions(tmp_path / source)
    rows = 250 if source.endswith('.parquet') else 600
    assert [(e.prompt, e.answer) for e in found] == expected[:rows], source
  where = [e.meta[PLACE] for e in questions(tmp_path / 'hub')]
  assert where[0].endswith('train-00000-of-00002.parquet:1')
  assert where[-1].endswith('train-00001-of-00002.parquet:350')
  assert len(questions(tmp_path / 'auto@dev', 'validation')) == 2
  pairs = PromptResponse(
    path=str(tmp_path / 'saved'), prompt='question', response='answer'
  )
  assert pairs.num_prompts('train') == 600


def test_unknown_splits_name_the_known(tmp_path):
  write_parquet(tmp_path / 'hub/train.parquet', ROWS[:3])
  with pytest.raises(ValueError, match=r"no split 'test', but \['train'\]"):
    questions(tmp_path / 'hub', 'test')
  (tmp_path / 'empty').mkdir()
  with pytest.raises(ValueError, match='no Parquet file and no state.json'):
    questions(tmp_path / 'empty')
  (tmp_path / 'dict').mkdir()
  (tmp_path / 'dict/dataset_dict.json').write_text('{"splits": ["train"]}')
  with pytest.raises(ValueError, match=r"no split 'test', but \['train'\]"):
    questions(tmp_path / 'dict', 'test')


BAD = [
  ('missing_field', {'question': pa.array(['a', 'b'])}),
  ('wrong_type', {'question': [['a'], ['b']], 'answer': [1, 2]}),
  ('wrong_type', {'question': ['a', 'b'], 'answer': [None, None]}),
  (
    'wrong_type',  # a date that Python does not have
    {
      'question': ['a', 'b'],
      'answer': pa.array([2**61, 0], pa.timestamp('us')),
    },
  ),
  ('empty_question', {'question': [' ', 'b'], 'answer': [1, 2]}),
  ('unparsable_answer', {'question': ['a', 'b'], 'answer': ['x', '1']}),
  ('too_long', {'question': ['a' * 300, 'b'], 'answer': [1, 2]}),
  (
    'invalid_utf8',
    {
      'question': pa.array([b'\xed\xa0\x80', b'b']).view(pa.string()),
      'answer': [1, 2],
    },
  ),
]


@pytest.mark.parametrize(('kind', 'columns'), BAD)
@pytest.mark.parametrize('name', ['rows.parquet', 'rows.arrow'])
def test_bad_rows_are_named_or_counted(tmp_path, kind, columns, name):
  path, table = tmp_path / name, pa.table(columns)
  if name == 'rows.parquet':
    pq.write_table(table, path)
  else:
    with pa.ipc.new_stream(str(path), table.schema) as out:
      out.write_table(table)
  with pytest.raises(ValueError, match=rf'{name}:1: ') as error:
    questions(path, max_row_bytes=200)
  assert error.value.kind == kind
  if kind == 'missing_field':
    assert 'question' in str(error.value)  # what is there
  task = QuestionAnswer(
    sources={'train': str(path)}, bad_rows='skip', max_row_bytes=200
  )
  if kind in ('missing_field', 'wrong_type'):  # the type is the column's
    with pytest.raises(ValueError, match='no usable row'):
      task.num_prompts('train')
  else:
    assert task.num_prompts('train') == 1
    assert task.skipped('train') == {kind: 1}


def test_damaged_files_are_named(tmp_path):
  """Cut and overwritten files: one line, never another error."""
  write_parquet(tmp_path / 'good.parquet', ROWS)
  stream(tmp_path / 'good.arrow', ROWS)
  for name in ('good.parquet', 'good.arrow'):
    whole = (tmp_path / name).read_bytes()
    for i, content in enumerate(
      [b'', b'PAR1', whole[:50], whole[: len(whole) // 2], whole[:-9]]
    ):
      path = tmp_path / f'{i}_{name}'
      path.write_bytes(content)
      if i == 4 and name == 'good.arrow':
        continue  # only the mark of the end is cut: all rows are there
      with pytest.raises(ValueError, match=f'{i}_{name}'):
        questions(path)
  folder = saved(tmp_path / 'saved', [ROWS])
  for text in ('{', '[]', '{}', '{"_data_files": [1]}'):
    (folder / 'state.json').write_text(text)
    with pytest.raises(ValueError, match='state.json'):
      questions(folder)
  (folder / 'state.json').write_text('{"_data_files": [{"filename": "no"}]}')
  with pytest.raises(ValueError, match='no'):
    questions(folder)


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
  monkeypatch.setitem(sys.modules, 'pyarrow', None)
  with pytest.raises(ImportError, match=r'rl_jax\[data\]'):
    list(tables.read(str(tmp_path / 'a.parquet'), 'train', 10, None))


def test_what_names_data(tmp_path):
  """Folders count if there is data in them: a configuration has a name, too."""
  write_parquet(tmp_path / 'hub/data/train.parquet', ROWS[:1])
  (tmp_path / 'bandit').mkdir()
  for text in ('a.jsonl', 'a.json', 'tfds:x', 'a.parquet'):
    assert is_source(text)
  for text in ('hub', 'hub@dev'):
    assert is_source(str(tmp_path / text)), text
  for text in ('bandit', 'configs/worlds/bandit.py', 'bandit@dev'):
    assert not is_source(str(tmp_path / text)), text
