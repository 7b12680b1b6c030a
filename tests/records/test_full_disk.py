"""Loggers lose lines to a full disk; the lines around them are whole."""

import gc
import sys
import time

import jax.numpy as jnp
import numpy as np
import pytest
from tensorboardX import record_writer

from rl_jax.records import metrics
from rl_jax.records.checkpoints.checkpointer import Checkpointer
from rl_jax.records.line_file import LineFile
from rl_jax.records.metrics import MetricsWriter, read_jsonl
from rl_jax.runtime.writer import sole_writer


@pytest.mark.parametrize('limit', range(300, 380, 7))
def test_metrics_lose_whole_lines(tmp_path, caplog, limit, file_size_limit):
  """The kernel cuts a line at any byte; with space, the next is whole."""
  writer = MetricsWriter(tmp_path)
  writer.seconds = lambda: 1.0  # lines of one length
  for step in range(8):
    with file_size_limit(limit):
      row = writer.log(step, {'reward/mean': 0.25})
    assert row['reward/mean'] == 0.25
  before = [row['step'] for row in read_jsonl(tmp_path / 'metrics.jsonl')]
  assert before == list(range(len(before))) and 0 < len(before) < 8
  writer.log(8, {'reward/mean': 0.5})
  offsets = writer.offsets()
  writer.close()
  path = tmp_path / 'metrics.jsonl'
  assert offsets['metrics.jsonl'] == path.stat().st_size
  assert [row['step'] for row in read_jsonl(path)] == [*before, 8]
  assert (
    'cannot be written' in caplog.text and '1 lines are lost' in caplog.text
  )
  assert f'lacks {8 - len(before)} lines' in caplog.text


def test_a_file_that_cannot_be_opened_again_is_tried_again(tmp_path):
  """A file system may be read-only for a while."""
  path = tmp_path / 'folder' / 'lines'
  path.parent.mkdir()
  file = LineFile(metrics.epath.Path(path), sole_writer())
  file.append(['1'])
  path.parent.rename(tmp_path / 'away')
  file.close()
  for _ in range(2):
    file.append(['2'])
  (tmp_path / 'away').rename(path.parent)
  file.append(['3'])
  file.close()
  assert path.read_text() == '1\n3\n'


def test_tensorboard_alone_on_a_full_disk(tmp_path, monkeypatch, caplog):
  """The first file is torn; a new one begins where there is space again."""
  full, write = [], record_writer.RecordWriter.write

  def limited(self, data):
    if full:
      self._writer.write(b'torn')
      raise OSError(28, 'No space left on device')
    write(self, data)

  monkeypatch.setattr(record_writer.RecordWriter, 'write', limited)
  writer = MetricsWriter(tmp_path)
  for step in range(30):  # more than the queue of a writer with a thread
    full[:] = [step] if 1 <= step < 28 else []
    writer.log(step, {'a': step})
  writer.close()
  assert 'TensorBoard files cannot be written' in caplog.text
  assert '10 rows are lost' in caplog.text
  assert len(read_jsonl(tmp_path / 'metrics.jsonl')) == 30
  files = sorted((tmp_path / 'tensorboard').iterdir())
  assert b'torn' in files[0].read_bytes()
  assert b'torn' not in files[-1].read_bytes()


def test_tensorboard_in_a_directory_that_cannot_be_made(tmp_path):
  (tmp_path / 'tensorboard').write_text('a file')
  writer = MetricsWriter(tmp_path)
  for step in range(3):
    writer.log(step, {'a': 1, 'large': 10**400, 'larger': 1e300})
  writer.close()
  assert len(read_jsonl(tmp_path / 'metrics.jsonl')) == 3


def test_batches_of_skipped_updates_do_not_end_a_run(
  tmp_path, caplog, monkeypatch, file_size_limit
):
  # numpy closes the archive again when it is deleted.
  monkeypatch.setattr(sys, 'unraisablehook', lambda unraisable: None)
  array = jnp.arange(100)  # compiled, and cached on disk, without the limit
  with file_size_limit(10):
    metrics.save_arrays(tmp_path / 'x.npz', {'a': array}, sole_writer())
  gc.collect()
  assert 'x.npz cannot be written' in caplog.text


def test_the_oldest_state_that_a_run_may_continue(
  tmp_path, monkeypatch, file_size_limit
):
  """A failed save changes nothing; best steps do not count."""
  # Orbax leaves the coroutines of failed writes unawaited.
  monkeypatch.setattr(sys, 'unraisablehook', lambda unraisable: None)
  saver = Checkpointer(
    tmp_path, keep_last=2, best_metric='m', on_save_error='warn'
  )
  assert saver.oldest_host_state() is None
  for step, expected in ((1, 1), (2, 1), (3, 2), (4, 3)):
    saver.save(step, {'x': np.ones(3)}, {'n': step}, {'m': -step})
    saver.wait()
    assert saver.oldest_host_state() == {'n': expected}
  with file_size_limit(10):
    for step in (5, 6, 7):
      saver.save(step, {'x': np.ones(3)}, {'n': step})
      saver.wait()
      assert saver.oldest_host_state() == {'n': 3}
  gc.collect()
  assert saver.steps() == [1, 3, 4]
  saver.save(8, {'x': np.ones(3)}, {'n': 8})  # no errors of before
  saver.wait()
  assert saver.oldest_host_state() == {'n': 4}
  saver.close()


def test_a_clock_that_is_set_back_hangs_nothing(tmp_path, monkeypatch):
  """A writer with a thread stopped at its next flush, a day later."""
  writer = MetricsWriter(tmp_path)
  writer.log(0, {'a': 1})
  monkeypatch.setattr(time, 'time', lambda: 1.0)
  for step in range(1, 40):
    writer.log(step, {'a': 1})
  writer.close()
  assert len(read_jsonl(tmp_path / 'metrics.jsonl')) == 40
