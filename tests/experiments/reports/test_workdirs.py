"""Work directories: found, grouped by configuration, damaged ones named."""

import json

import pytest

from experiments.flags import configuration
from experiments.reports import typed
from experiments.reports import workdirs as workdirs_lib
from rl_jax import serialization

ROW = '{"step": 1, "reward/mean": 0.5}\n'


def write(path, *sets, method='grpo', metrics=ROW):
  """A run with one row."""
  path.mkdir(parents=True)
  found = configuration.build('configs/worlds/bandit.py', method, list(sets))
  (path / 'experiment.json').write_text(serialization.to_json(found))
  (path / 'metrics.jsonl').write_text(metrics)
  return str(path)


def labels(*paths):
  return [run.label for run in workdirs_lib.read_runs(list(map(str, paths)))]


def test_runs_are_grouped_by_configuration_whatever_they_are_called(tmp_path):
  """Two methods with two seeds each; a mesh makes no difference."""
  one = write(tmp_path / 'monday', 'seed=0')
  two = write(tmp_path / 'x' / 'again', 'seed=7', 'mesh.data=8')
  three = write(tmp_path / 'seed1', 'seed=1', method='rloo')
  four = write(tmp_path / 'seed2', 'seed=0', method='rloo')
  assert labels(one, two, three, four) == ['grpo', 'grpo', 'rloo', 'rloo']
  # Directories of directories, and patterns.
  assert labels(tmp_path) == ['grpo', 'rloo', 'rloo', 'grpo']
  assert labels(tmp_path / 'seed*') == [tmp_path.name] * 2  # as directories
  with pytest.raises(ValueError, match='given twice'):
    labels(tmp_path, one)


def test_runs_are_called_as_they_were_typed(tmp_path):
  """The file of an own method; seeds are joined by configuration only."""
  change = 'method.losses.PPOClip.clip_high=0.5'
  paths = [
    write(tmp_path / 'a', 'seed=0'),
    write(tmp_path / 'b', 'seed=0', change),
    write(tmp_path / 'c', 'seed=1', change),
  ]
  for path in paths[1:]:
    typed.Typed('bandit', '../mine/wide.py').write(path)
  assert labels(*paths) == ['grpo', 'wide', 'wide']


def test_a_repeated_seed_is_not_another_seed(tmp_path):
  """It has its own line: a band of copies would be too narrow."""
  one, two = (write(tmp_path / name, 'seed=3') for name in 'ab')
  three = write(tmp_path / 'c', 'seed=4')
  assert labels(one, two, three) == ['a', 'a (b)', 'a']


def test_without_a_configuration_paths_say_what_belongs_together(tmp_path):
  """Directories that differ in their seed only."""
  for name in ('a/x/seed1', 'a/x/seed22', 'b/x'):
    (tmp_path / name).mkdir(parents=True)
    (tmp_path / name / 'metrics.jsonl').write_text(ROW)
  names = [tmp_path / name for name in ('a/x/seed1', 'a/x/seed22', 'b/x')]
  assert labels(*names) == ['a/x', 'a/x', 'b/x']
  assert labels(names[2]) == ['x']


def test_a_class_of_the_users_own_does_not_part_seeds(tmp_path, caplog):
  """The raw file is compared where it cannot be built; why is said once."""
  for name, seed in (('p', 0), ('q', 1)):
    path = write(tmp_path / name, f'seed={seed}')
    text = json.loads((tmp_path / name / 'experiment.json').read_text())
    text['task']['class'] = 'tasks.MyTask'
    (tmp_path / name / 'experiment.json').write_text(json.dumps(text))
  first, second = workdirs_lib.read_runs([str(tmp_path / n) for n in 'pq'])
  assert first.config is None and 'MyTask' in first.notes[0]
  assert workdirs_lib._key(first) == workdirs_lib._key(second)
  assert path and caplog.text.count('refusing') == 1


@pytest.mark.parametrize(
  ('files', 'notes'),
  [
    ({'metrics.jsonl': ROW + '{"step": 2, "rew'}, ['line 2 of metrics.jsonl']),
    ({'metrics.jsonl': ''}, ['metrics.jsonl is empty']),
    ({'metrics.jsonl': '\x00\xff\n' + ROW}, ['line 1 of metrics.jsonl is not']),
    ({'metrics.jsonl': '{"step": "x"}\n[]\n'}, ['line 1 of', 'line 2 of']),
    ({'rollouts.jsonl': ''}, ['metrics.jsonl is missing']),
    (
      {'experiment.json': '{"class"', 'metrics.jsonl': ROW},
      ['experiment.json'],
    ),
    (
      {'experiment.json': '[1]', 'metrics.jsonl': ROW},
      ['holds no ExperimentConfig'],
    ),
    ({'metrics.jsonl': '{"step": 1, "train/skipped": null}\n'}, []),
  ],
)
def test_damaged_files_cost_a_note_each(tmp_path, files, notes):
  for name, text in files.items():
    (tmp_path / name).write_text(text)
  (run,) = workdirs_lib.read_runs([str(tmp_path)])
  found = [
    note
    for note in run.notes
    if 'json is missing' not in note or 'metrics' in note
  ]
  assert len(found) == len(notes)
  for note, part in zip(found, notes, strict=True):
    assert part in note and '\n' not in note


def test_paths_without_a_run_are_named(tmp_path):
  with pytest.raises(ValueError, match='holds none: it has none of experiment'):
    workdirs_lib.find([str(tmp_path)])
  with pytest.raises(ValueError, match="nothing' is not a work directory"):
    workdirs_lib.find([str(tmp_path / 'nothing')])
