"""Files of commands: refused before anything is computed, written at once."""

import pytest

from experiments.flags import outputs


@pytest.mark.parametrize('path', ['', '{}', '{}/nowhere/x', '{}/file/x'])
def test_where_no_file_can_be_written_is_named(path, tmp_path):
  (tmp_path / 'file').write_text('')
  path = path.format(tmp_path)
  with pytest.raises(ValueError, match='no file can be written there') as error:
    outputs.check_file('scores_out', path)
  assert f'--scores_out={path}: ' in str(error.value)


def test_rows_are_written_at_once(tmp_path, monkeypatch):
  """A row that is no JSON leaves the file as it was."""
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
