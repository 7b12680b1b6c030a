"""Edited data and model files are noticed when a run continues."""

import json
import os

import pytest

from configs.worlds import bandit
from rl_jax.models.source import ModelSource
from rl_jax.overrides import override
from rl_jax.runs import directory, fingerprints
from rl_jax.tasks import QuestionAnswer


def write_rows(path, count=5, changed=None):
  rows = [{'question': f'{i} + 1', 'answer': str(i + 1)} for i in range(count)]
  if changed is not None:
    rows[changed]['answer'] = '0'
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))


@pytest.fixture
def run(toy, tmp_path):
  """(configuration on a file and a model folder, its work directory)."""
  write_rows(tmp_path / 'rows.jsonl')
  model = tmp_path / 'model'
  model.mkdir()
  (model / 'config.json').write_text('{}')
  (model / 'model.safetensors').write_bytes(b'weights')
  config = bandit.get_config(toy.get_method('grpo'))
  source = {'train': str(tmp_path / 'rows.jsonl')}
  config = override(config, 'model.path', str(model))
  object.__setattr__(config, 'task', QuestionAnswer(sources=source))
  workdir = str(tmp_path / 'run')
  directory.write_config(config, workdir, directory.check(config, workdir))
  return config, workdir


def refusal(config, workdir, allowed=()):
  with pytest.raises(ValueError) as error:
    directory.check(config, workdir, allowed)
  return str(error.value)


def test_an_edited_row_is_named(run, tmp_path):
  """File, hashes and line; the run continues with the named flag only."""
  config, workdir = run
  assert directory.check(config, workdir).lines == ()
  write_rows(tmp_path / 'rows.jsonl', changed=3)
  text = refusal(config, workdir)
  assert 'task.sources.train: sha256 ' in text and 'first in line 4)' in text
  assert '--allow_change=task.sources.train' in text
  write_rows(tmp_path / 'rows.jsonl', count=7)
  assert 'first in line 6)' in refusal(config, workdir, ['model.path'])
  changes = directory.check(config, workdir, ['task.sources.train'])
  directory.write_config(config, workdir, changes, 8)
  assert directory.check(config, workdir).lines == ()
  metrics = {9: {'changed/task.sources.train': 1.0}}
  assert directory.change_metrics(workdir) == metrics


def test_an_edited_model_is_named(run, tmp_path):
  """Weights that changed, and files that came or went."""
  config, workdir = run
  (tmp_path / 'model/model.safetensors').write_bytes(b'Weights')
  (tmp_path / 'model/tokenizer.json').write_text('{}')
  (tmp_path / 'model/config.json').unlink()
  (tmp_path / 'model/notes.md').write_text('not read')
  text = refusal(config, workdir)
  assert 'model.path/model.safetensors: sha256 ' in text
  assert 'model.path/tokenizer.json: no file -> sha256 ' in text
  assert 'model.path/config.json: sha256 ' in text and '-> no file' in text
  assert 'notes.md' not in text and text.endswith('--allow_change=model.path')
  assert directory.check(config, workdir, ['model.path']).lines


def test_files_may_move(run, tmp_path):
  """The same content at another place is the same run; it is recorded."""
  config, workdir = run
  os.rename(tmp_path / 'rows.jsonl', tmp_path / 'moved.jsonl')
  os.rename(tmp_path / 'model', tmp_path / 'model2')
  moved = override(config, 'model.path', str(tmp_path / 'model2'))
  source = {'train': str(tmp_path / 'moved.jsonl')}
  object.__setattr__(moved, 'task', QuestionAnswer(sources=source))
  changes = directory.check(moved, workdir)
  assert len(changes.lines) == 2
  directory.write_config(moved, workdir, changes, 1)
  write_rows(tmp_path / 'moved.jsonl', changed=0)
  assert 'first in line 1)' in refusal(moved, workdir)


def test_a_run_of_before_gets_fingerprints(run):
  """The fingerprints are of what is there when it continues."""
  config, workdir = run
  os.unlink(f'{workdir}/fingerprints.json')
  changes = directory.check(config, workdir)
  directory.write_config(config, workdir, changes, 3)
  assert 'task.sources.train' in fingerprints.read(workdir)
  assert directory.change_metrics(workdir) == {}
  with open(f'{workdir}/fingerprints.json', 'w') as file:
    file.write('[1')
  assert 'fingerprints.json is damaged' in refusal(config, workdir)


def test_a_large_file_is_read_again_only_if_it_changed(
  run, tmp_path, monkeypatch
):
  """By size and time of modification; small files are always read."""
  config, workdir = run
  recorded = fingerprints.read(workdir)
  path = tmp_path / 'rows.jsonl'
  stat = path.stat()
  write_rows(path, changed=2)
  os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
  key = 'task.sources.train'
  assert fingerprints.of(config, recorded)[key] != recorded[key]
  monkeypatch.setattr(fingerprints, 'READ_ALWAYS', 0)
  os.truncate(path, stat.st_size)  # the same size
  os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
  assert fingerprints.of(config, recorded)[key] == recorded[key]
  os.utime(path)
  assert fingerprints.of(config, recorded)[key] != recorded[key]


@pytest.mark.parametrize(
  ('text', 'keys'),
  [
    ('data', {'task.sources.train/a.parquet', 'task.sources.train/b/c'}),
    (
      'tfds:data@train',
      {'task.sources.train/a.parquet', 'task.sources.train/b/c'},
    ),
    ('data/*.parquet', {'task.sources.train/a.parquet'}),
    ('parquet:data/a.parquet', {'task.sources.train'}),
    ('tfds:gsm8k', set()),
    ('nowhere.jsonl', set()),
  ],
)
def test_which_files_a_source_names(run, tmp_path, monkeypatch, text, keys):
  """Folders with all files that are not hidden, patterns, prefixes."""
  config, _ = run
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'data/b').mkdir(parents=True)
  for name in ('a.parquet', 'b/c', '.hidden'):
    (tmp_path / 'data' / name).write_text(name)
  object.__setattr__(config, 'task', QuestionAnswer(sources={'train': text}))
  object.__setattr__(config, 'model', ModelSource(path=None))
  assert fingerprints.of(config).keys() == keys


def test_of_a_run_the_newest_checkpoint_counts(tmp_path, run):
  """A warm start that was trained further is another model."""
  config, _ = run
  config = override(config, 'model.path', str(tmp_path / 'warm'))
  found = []
  for step in (1, 2):
    path = tmp_path / f'warm/checkpoints/step_{step:08d}'
    path.mkdir(parents=True)
    (path / 'COMMITTED').write_text(str(step))
    found.append(fingerprints.of(config))
  (line,) = fingerprints.changes(*found)
  assert line.startswith('model.path/newest: ')
