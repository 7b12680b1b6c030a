"""Files of metrics: valid JSON, complete and without repeats on resume."""

import glob
import json
import math
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tensorboardX.proto import event_pb2

from rl_jax.records import metrics
from rl_jax.records.metrics import (
  DelayedMetrics,
  MetricsWriter,
  read_jsonl,
  to_json,
)
from rl_jax.runtime.writer import sole_writer


def lines(path):
  return path.read_bytes().splitlines(keepends=True)


def write_steps(writer, steps):
  for step in steps:
    writer.log_rollouts(step, [{'response': f'tex\n{step}', 'reward': 0.5}])
    writer.log(step, {'reward/mean': step / 10})


def test_one_flushed_line_per_step(tmp_path):
  """Another process sees each line at once, step and time first."""
  writer = MetricsWriter(tmp_path / 'new')
  writer.log(3, {'reward/mean': jnp.float32(0.25), 'n': np.int64(2), 'b': 1})
  (row,) = read_jsonl(tmp_path / 'new' / 'metrics.jsonl')
  assert list(row) == ['step', 'time/wall_seconds', 'reward/mean', 'n', 'b']
  assert (row['step'], row['reward/mean'], row['n']) == (3, 0.25, 2)
  writer.close()


def test_only_process_0_writes_files(tmp_path, monkeypatch):
  """Another process gets the same rows, for its guards, and writes nothing."""
  monkeypatch.setattr(metrics.processes, 'is_main', lambda: False)
  writer = MetricsWriter(tmp_path / 'new')
  write_steps(writer, [1])
  delayed = DelayedMetrics(writer)
  delayed.push(2, {'reward/mean': jnp.float32(0.25)})
  assert delayed.flush()['reward/mean'] == 0.25
  assert writer.offsets().keys() == {'time/wall_seconds'}
  writer.truncate_to({'metrics.jsonl': 7})
  metrics.save_arrays(tmp_path / 'x.npz', {'a': jnp.zeros(2)}, sole_writer())
  writer.close()
  assert not list(tmp_path.iterdir())


def test_non_finite_numbers_are_valid_json_and_come_back(tmp_path):
  """Strict parsers accept the file; `read_jsonl` gives the floats again."""
  writer = MetricsWriter(tmp_path)
  values = {'nan': jnp.nan, 'inf': np.inf, 'neg': jnp.asarray(-jnp.inf)}
  writer.log(0, values)
  writer.log_rollouts(0, [{'logp': np.array([0.5, -np.inf])}])
  writer.close()

  def refuse(name):
    raise AssertionError(f'{name} is not JSON')

  text = (tmp_path / 'metrics.jsonl').read_text()
  row = json.loads(text, parse_constant=refuse)
  assert row['nan'] == 'NaN' and row['neg'] == '-Infinity'
  (row,) = read_jsonl(tmp_path / 'metrics.jsonl')
  assert math.isnan(row['nan']) and row['inf'] == math.inf
  (rollout,) = read_jsonl(tmp_path / 'rollouts.jsonl')
  assert rollout == {'step': 0, 'logp': [0.5, -math.inf]}


def test_resume_cuts_what_was_written_after_the_checkpoint(tmp_path):
  """E0 but for time: killed in the line of step 4 and resumed at step 3."""
  one = MetricsWriter(tmp_path / 'one')
  write_steps(one, range(6))
  one.close()
  two = MetricsWriter(tmp_path / 'two')
  write_steps(two, range(3))
  offsets = json.loads(json.dumps(two.offsets()))
  write_steps(two, range(3, 5))
  two.close()
  for name in ('metrics.jsonl', 'rollouts.jsonl'):
    path = tmp_path / 'two' / name
    path.write_bytes(path.read_bytes()[:-9])
  two = MetricsWriter(tmp_path / 'two')
  two.truncate_to(offsets, next_step=3)
  assert two.last == read_jsonl(tmp_path / 'two' / 'metrics.jsonl')[2]
  write_steps(two, range(3, 6))
  two.close()
  for name in ('metrics.jsonl', 'rollouts.jsonl'):
    rows = [read_jsonl(tmp_path / run / name) for run in ('one', 'two')]
    for row in rows[0] + rows[1]:
      row.pop('time/wall_seconds', None)
    assert [row['step'] for row in rows[1]] == list(range(6))
    assert rows[0] == rows[1]


def test_a_fresh_start_keeps_the_files_aside(tmp_path, caplog):
  """Without a checkpoint the steps are written again; nothing is lost."""
  for count in (2, 3, 1):
    writer = MetricsWriter(tmp_path)
    writer.truncate_to({})
    assert writer.last == {}
    write_steps(writer, range(count))
    writer.close()
  steps = {'': [0], '.1': [0, 1], '.2': [0, 1, 2]}
  for name in ('metrics.jsonl', 'rollouts.jsonl'):
    for number, expected in steps.items():
      rows = read_jsonl(tmp_path / f'{name}{number}')
      assert [row['step'] for row in rows] == expected
    assert f'{name} is kept as {name}.2' in caplog.text


def test_lost_lines_are_warned_about_and_the_run_continues(tmp_path, caplog):
  writer = MetricsWriter(tmp_path)
  writer.truncate_to({'metrics.jsonl': 1000})
  writer.log(7, {'a': 1})
  writer.close()
  assert 'the checkpoint counted 1000' in caplog.text
  assert len(lines(tmp_path / 'metrics.jsonl')) == 1


def rows_of(path):
  return [row['step'] for row in read_jsonl(path)]


def other_session(tmp_path):
  """Files with the steps 1 to 3, and the offsets at each of these steps.

  The lines have other lengths than those of another session would have.
  """
  writer, offsets = MetricsWriter(tmp_path, trackers=()), [{}]
  for step in (1, 2, 3):
    write_steps(writer, [step])
    offsets.append(json.loads(json.dumps(writer.offsets())))
  writer.close()
  return offsets


@pytest.mark.parametrize('shift', [-30, -1, 1, 7])
@pytest.mark.parametrize('name', ['metrics.jsonl', 'rollouts.jsonl'])
def test_an_offset_within_a_line_keeps_whole_lines(
  tmp_path, caplog, name, shift
):
  """E0: none is torn, none is lost, and a warning names the file."""
  offsets = other_session(tmp_path)
  path = tmp_path / name
  before = path.read_bytes()
  writer = MetricsWriter(tmp_path, trackers=())
  offsets[2][name] += shift
  writer.truncate_to(offsets[2], next_step=3)
  write_steps(writer, [3])
  writer.close()
  assert rows_of(path) == [1, 2, 3]
  assert before.startswith(b''.join(lines(path)[:2]))
  assert f'{name} has no line that ends' in caplog.text
  assert (tmp_path / f'{name}.1').read_bytes() == before
  assert '2 lines are copied' in caplog.text


@pytest.mark.parametrize('at, step', [(1, 2), (3, 2), (1, 3), (3, 1)])
def test_an_offset_at_the_end_of_another_step_is_noticed(
  tmp_path, caplog, at, step
):
  """E0: the steps up to that of the checkpoint are kept, in both files."""
  offsets = other_session(tmp_path)
  writer = MetricsWriter(tmp_path, trackers=())
  writer.truncate_to(offsets[at], next_step=step + 1)
  write_steps(writer, [step + 1])
  writer.close()
  for name in ('metrics.jsonl', 'rollouts.jsonl'):
    assert rows_of(tmp_path / name) == [*range(1, step + 2)]
    assert f'{name} has other lines around byte' in caplog.text


def test_a_file_that_is_too_short_does_not_keep_half_a_line(tmp_path, caplog):
  """The rows that are missing are named, too."""
  offsets = other_session(tmp_path)
  path = tmp_path / 'metrics.jsonl'
  path.write_bytes(path.read_bytes()[:-9])
  writer = MetricsWriter(tmp_path, trackers=())
  writer.truncate_to(offsets[3], next_step=4)
  assert writer.last['step'] == 2
  write_steps(writer, [4])
  writer.close()
  assert rows_of(path) == [1, 2, 4]
  assert 'but the checkpoint counted' in caplog.text
  assert 'ends with step 2, and the checkpoint is of step 3' in caplog.text


@pytest.mark.parametrize(
  'middle',
  [b'{"step": 2, "a": 0.{"step": 3, "a": 1}', b'[]', b'{"step": 1}', b'\xff'],
)
def test_a_file_that_was_torn_before_is_noticed(tmp_path, caplog, middle):
  """By an earlier version; its lines stay as they are."""
  path = tmp_path / 'metrics.jsonl'
  content = b'{"step": 1}\n' + middle + b'\n{"step": 4}\n'
  path.write_bytes(content)
  writer = MetricsWriter(tmp_path, trackers=())
  writer.truncate_to({'metrics.jsonl': len(content)}, next_step=5)
  assert writer.last == {'step': 4}
  writer.close()
  assert path.read_bytes() == content
  assert 'metrics.jsonl:2 is not a row' in caplog.text


def test_whole_files_are_continued_without_a_word(tmp_path, caplog):
  """At every step, and where an iteration has logged no response."""
  offsets = other_session(tmp_path)
  writer = MetricsWriter(tmp_path, trackers=())
  writer.truncate_to(offsets[3], next_step=4)
  writer.log(4, {'a': 1})
  offsets.append(writer.offsets())
  writer.close()
  for step in (4, 3, 2, 1):
    writer = MetricsWriter(tmp_path, trackers=())
    writer.truncate_to(offsets[step], next_step=step + 1)
    assert writer.last['step'] == step
    writer.close()
  assert not caplog.text


def test_wall_seconds_add_up_over_sessions(tmp_path):
  writer = MetricsWriter(tmp_path)
  writer.truncate_to({'time/wall_seconds': 5000.0})
  assert 5000 <= writer.seconds() < 5600
  assert writer.offsets()['time/wall_seconds'] >= 5000
  writer.close()


def test_a_partial_last_line_is_skipped_and_a_bad_line_named(tmp_path):
  path = tmp_path / 'x.jsonl'
  path.write_bytes(b'{"a": 1}\n{"a": 2}\n{"a"')
  assert read_jsonl(path) == [{'a': 1}, {'a': 2}]
  path.write_bytes(b'{"a": 1}\n{"a"\n{"a": 2}\n')
  with pytest.raises(ValueError, match='x.jsonl:2 is not JSON'):
    read_jsonl(path)


def test_arrays_are_not_metrics(tmp_path):
  writer = MetricsWriter(tmp_path)
  with pytest.raises(ValueError, match=r'loss has shape \(2,\)'):
    writer.log(0, {'loss': jnp.ones(2)})
  writer.close()


def test_to_json_keeps_bfloat16_booleans_and_nesting():
  value = {'x': jnp.bfloat16(0.5), 'y': (np.True_, [np.int8(3)]), 'z': None}
  assert to_json(value) == {'x': 0.5, 'y': [True, [3]], 'z': None}


def test_delayed_metrics_read_the_device_once_and_one_step_late(
  tmp_path, monkeypatch
):
  """Step n is read when n + 1 is pushed, in one device_get."""
  reads = []
  get = jax.device_get

  def counting(tree):
    if any(isinstance(x, jax.Array) for x in jax.tree.leaves(tree)):
      reads.append(1)
    return get(tree)

  monkeypatch.setattr(jax, 'device_get', counting)
  writer = MetricsWriter(tmp_path)
  delayed = DelayedMetrics(writer)
  path = tmp_path / 'metrics.jsonl'
  assert delayed.push(0, {'a': jnp.float32(1), 'b': jnp.int32(2)}) is None
  assert not reads and not lines(path)
  row = delayed.push(1, {'a': jnp.float32(3)})
  assert (row['step'], row['a'], row['b']) == (0, 1.0, 2)
  assert len(reads) == 1 and len(lines(path)) == 1
  assert delayed.flush()['a'] == 3.0 and writer.last['step'] == 1
  assert delayed.flush() is None
  assert len(reads) == 2
  assert [row['step'] for row in read_jsonl(path)] == [0, 1]
  writer.close()


def events(directory):
  found = []
  for path in sorted(glob.glob(f'{directory}/*tfevents*')):
    data = pathlib.Path(path).read_bytes()
    while data:
      length = int.from_bytes(data[:8], 'little')
      found.append(event_pb2.Event.FromString(data[12 : 12 + length]))
      data = data[16 + length :]
  return found


def test_tensorboard_gets_scalars_and_the_purge_step(tmp_path):
  """The resumed run gives TensorBoard the first step that it repeats."""
  writer = MetricsWriter(tmp_path)
  writer.truncate_to({}, next_step=4)
  writer.log(4, {'reward/mean': 0.5, 'bad': math.nan})
  writer.close()
  found = events(tmp_path / 'tensorboard')
  scalars = {v.tag: v.simple_value for e in found for v in e.summary.value}
  assert scalars['reward/mean'] == 0.5 and 'bad' not in scalars
  assert [e.step for e in found if e.HasField('session_log')] == [4]


def test_without_tensorboard_no_directory_appears(tmp_path):
  writer = MetricsWriter(tmp_path, trackers=())
  writer.log(0, {'a': 1})
  writer.close()
  assert not (tmp_path / 'tensorboard').exists()
