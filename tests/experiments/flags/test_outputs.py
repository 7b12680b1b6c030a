"""Files of commands: refused before anything is computed, written at once."""

import os
import socket

import pytest

from experiments.flags import outputs
from experiments.reports import html


@pytest.mark.parametrize('path', ['', '{}', '{}/nowhere/x', '{}/file/x'])
def test_where_no_file_can_be_written_is_named(path, tmp_path):
  (tmp_path / 'file').write_text('')
  path = path.format(tmp_path)
  with pytest.raises(ValueError, match='no file can be written there') as error:
    outputs.check_file('scores_out', path)
  assert f'--scores_out={path}: ' in str(error.value)


@pytest.mark.parametrize('kind', ['device', 'link', 'pipe', 'socket'])
def test_what_is_no_file_is_not_replaced(tmp_path, kind):
  """Root could remove a device; --out of a report, too."""
  path = str(tmp_path / 'out')
  with socket.socket(socket.AF_UNIX) as server:
    if kind == 'device':
      path = '/dev/full'
    elif kind == 'link':
      os.symlink('/dev/full', path)
    elif kind == 'pipe':
      os.mkfifo(path)
    else:
      server.bind(path)
    for check in (
      lambda: outputs.check_file('out', path),
      lambda: html.check_writable(path),
    ):
      with pytest.raises(ValueError, match=f'--out={path} is a device, a pipe'):
        check()


def test_a_temporary_name_that_is_a_link_is_not_written(tmp_path):
  """The names of temporary files are not known before."""
  (tmp_path / 'precious').write_text('data')
  path = str(tmp_path / 'page.html')
  os.symlink(tmp_path / 'precious', f'{path}.tmp')
  html.write('page', path)
  outputs.write_json(path, {})
  outputs.write_rows(path, [{}])
  assert (tmp_path / 'precious').read_text() == 'data'


def test_rows_are_written_at_once(tmp_path, monkeypatch):
  """A row that is not JSON leaves the file as it was."""
  monkeypatch.chdir(tmp_path)
  outputs.check_file('out', 'rows.jsonl')
  outputs.write_rows('rows.jsonl', [{'a': 'é'}, {'b': 2}])
  before = (tmp_path / 'rows.jsonl').read_text()
  assert before.splitlines() == ['{"a": "\\u00e9"}', '{"b": 2}']
  with pytest.raises(TypeError):
    outputs.write_rows('rows.jsonl', [{'a': 1}, {'b': {1}}])
  assert (tmp_path / 'rows.jsonl').read_text() == before


def test_a_whole_file_is_written_at_once(tmp_path):
  path = str(tmp_path / 'found.json')
  outputs.write_json(path, {'a': [1, None]})
  with pytest.raises(TypeError):
    outputs.write_json(path, {'a': {1}})
  assert (tmp_path / 'found.json').read_text() == '{"a": [1, null]}'


def test_files_of_a_run_are_not_replaced(tmp_path):
  """By their path or through a link; others may lie in its directory."""
  run = tmp_path / 'run'
  run.mkdir()
  (tmp_path / 'link').symlink_to('run')
  outputs.check_file('out', str(run / 'metrics.jsonl'))  # no run yet
  (run / 'experiment.json').write_text('{}')
  for folder in (run, tmp_path / 'link'):
    for name in outputs.RUN_FILES:
      with pytest.raises(ValueError, match=f'would replace {name} of the run'):
        outputs.check_file('out', str(folder / name))
  outputs.check_file('out', str(run / 'pairs.jsonl'))


def test_the_source_is_not_replaced(tmp_path):
  (tmp_path / 'link').symlink_to(tmp_path)
  outputs.check_not_source('model', None, str(tmp_path))
  outputs.check_not_source('model', str(tmp_path / 'other'), str(tmp_path))
  with pytest.raises(ValueError, match='would replace --model'):
    outputs.check_not_source('model', str(tmp_path / 'link'), str(tmp_path))


def test_json_has_no_nan():
  nan = float('nan')
  found = outputs.finite({'a': nan, 'b': [1.5, -float('inf')], 'c': ('x', 3)})
  assert found == {'a': None, 'b': [1.5, None], 'c': ['x', 3]}
