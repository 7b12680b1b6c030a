"""A run saves and keeps these checkpoints."""

import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.records.checkpoints.checkpointer import (
  CheckpointConfig,
  Checkpointer,
)
from rl_jax.records.metrics import MetricsWriter, read_jsonl
from rl_jax.runs import saving
from rl_jax.runtime.stateful import Stateful

METRIC = 'evaluation/pass_at_1'
TREE = {'x': jnp.zeros(2)}


@pytest.mark.parametrize('metric', [METRIC, 'rollout/reward'])
def test_the_best_is_kept_by_any_metric_of_a_row(tmp_path, metric):
  """Not by those of evaluations and rewards only."""
  config = CheckpointConfig(keep_last=1, best_metric=metric)
  saver = saving.Saver(str(tmp_path), config)
  for step, score in ((10, 1.0), (20, 0.5), (30, 0.2)):
    saver.save(step, TREE, {}, {metric: score, 'reward/mean': -score})
  saver.close()
  assert saving.steps_of(str(tmp_path)) == [10, 30]


def test_a_best_step_that_is_damaged_is_saved_again(tmp_path):
  """A resumed run reaches it again, between two of checkpoint.every."""
  saver = saving.Saver(str(tmp_path), CheckpointConfig())
  for step, score in ((10, 0.1), (12, 0.9)):
    saver.save(step, TREE, {}, {METRIC: score})
  assert not saver.due(14, {METRIC: 0.9})
  saver.close()
  host = tmp_path / 'checkpoints' / 'step_00000012' / 'host.json'
  host.write_text('damaged')
  saver = saving.Saver(str(tmp_path), CheckpointConfig())
  assert saver.restore(TREE).step == 10
  assert saver.due(12, {METRIC: 0.9})
  assert not saver.due(12, {METRIC: 0.1})
  saver.close()


def test_a_best_metric_that_is_misspelled_is_named(tmp_path):
  """Otherwise no checkpoint would be kept for it, without a warning."""
  row = {'evaluation/svamp/pass_at_1': 0.5, 'evaluation/pass_at_1': 0.5}

  def check(name, **more):
    config = CheckpointConfig(best_metric=name, **more)
    saving.Saver(str(tmp_path), config).check_metric(row)

  check('evaluation/svamp/pass_at_1')
  check('reward/mean')
  check('evaluation/swamp/pass_at_1', keep_best=0)
  with pytest.raises(ValueError, match=r"best_metric: .*'evaluation/svamp/pa"):
    check('evaluation/swamp/pass_at_1')


def test_a_checkpoint_that_comes_back_continues_nothing(tmp_path, caplog):
  """E0: the run continued from an earlier step, and its files have other lines
  since.
  """

  def session(last, save=True):
    """Continues to a step; whether the last one is saved."""
    saver = saving.Saver(str(tmp_path), CheckpointConfig(keep_last=5))
    writer = MetricsWriter(tmp_path, trackers=())
    found = saver.restore({'x': np.zeros(2)})
    step = found.step if found else 0
    offsets = found.host_state if found else {}
    writer.truncate_to(offsets, next_step=step + 1)
    while step < last:
      step += 1
      writer.log(step, {'a' * len(caplog.text): step})  # of another length
      if save or step < last:
        saver.save(step, {'x': np.full(2, float(step))}, writer.offsets(), {})
    saver.close()
    writer.close()
    return [row['step'] for row in read_jsonl(tmp_path / 'metrics.jsonl')]

  session(4)
  path = tmp_path / 'checkpoints' / 'step_00000004'
  good = (path / 'host.json').read_bytes()
  (path / 'host.json').write_bytes(b'unreadable for a while')
  assert session(4, save=False) == [1, 2, 3, 4]
  assert not path.exists()
  assert 'checkpoint 4 is kept as step_00000004.1' in caplog.text
  (path.with_name(f'{path.name}.1') / 'host.json').write_bytes(good)
  assert session(5) == [1, 2, 3, 4, 5]
  assert saving.steps_of(str(tmp_path)) == [1, 2, 3, 4, 5]
  assert path.with_name(f'{path.name}.1').exists()


def test_reading_sets_nothing_aside(tmp_path):
  """Evaluations look at a directory in which another process may train."""
  config = CheckpointConfig(keep_last=5)
  saver = saving.Saver(str(tmp_path), config)
  for step in (1, 2):
    saver.save(step, TREE, {}, {})
  saver.close()
  path = tmp_path / 'checkpoints'
  (path / 'step_00000002' / 'host.json').write_text('damaged')
  reader = Checkpointer(path)
  assert reader.restore({'x': np.zeros(2, np.float32)}).step == 1
  reader.close()
  assert (path / 'step_00000002').exists()


class Part(Stateful):
  """A part of a run with one array and one number."""

  def __init__(self, name, array):
    self.name, self.array, self.number = name, array, 0

  def arrays(self):
    return {} if self.array is None else {f'{self.name}_array': self.array}

  def host(self):
    return {f'{self.name}_number': self.number}


def test_a_checkpoint_has_the_entries_of_all_parts():
  parts = (Part('a', 1.0), Part('b', None), Part('c', 2.0))
  assert saving.arrays_of(parts) == {'a_array': 1.0, 'c_array': 2.0}
  found = saving.host_of(parts)
  assert list(found) == ['a_number', 'b_number', 'c_number']


def test_two_parts_with_one_entry_are_named():
  """Else one would be restored from what the other saved."""
  one, other = Part('a', 1.0), Part('b', 2.0)
  other.arrays = one.arrays
  with pytest.raises(ValueError, match="a and b both save 'a_array'"):
    saving.arrays_of((one, other))
