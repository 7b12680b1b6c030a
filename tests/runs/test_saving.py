"""Which checkpoints a run saves and keeps."""

import jax.numpy as jnp
import pytest

from rl_jax.records.checkpoints.checkpointer import CheckpointConfig
from rl_jax.runs import saving

METRIC = 'evaluation/pass_at_1'
TREE = {'x': jnp.zeros(2)}


@pytest.mark.parametrize('metric', [METRIC, 'rollout/reward'])
def test_the_best_is_kept_by_any_metric_of_a_row(tmp_path, metric):
  """Not by those of evaluations and rewards alone."""
  config = CheckpointConfig(keep_last=1, best_metric=metric)
  saver = saving.Saver(str(tmp_path), config)
  for step, score in ((10, 1.0), (20, 0.5), (30, 0.2)):
    saver.save(step, TREE, {}, {metric: score, 'reward/mean': -score})
  saver.close()
  assert saving.steps_of(str(tmp_path)) == [10, 30]


def test_a_best_step_that_is_damaged_is_saved_again(tmp_path):
  """A resumed run reaches it anew, between two of checkpoint.every."""
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
  """Else no checkpoint would be kept for it, and nobody told."""
  row = {'evaluation/svamp/pass_at_1': 0.5, 'evaluation/pass_at_1': 0.5}

  def check(name, **more):
    config = CheckpointConfig(best_metric=name, **more)
    saving.Saver(str(tmp_path), config).check_metric(row)

  check('evaluation/svamp/pass_at_1')
  check('reward/mean')
  check('evaluation/swamp/pass_at_1', keep_best=0)
  with pytest.raises(ValueError, match=r"best_metric: .*'evaluation/svamp/pa"):
    check('evaluation/swamp/pass_at_1')
