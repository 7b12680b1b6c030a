"""Supervised training: the method sft on the responses of a task's data."""

import dataclasses

import pytest

from experiments.flags import configuration
from rl_jax.config import EvaluationConfig, StoppingConfig
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.records.checkpoints.checkpointer import CheckpointConfig
from rl_jax.runs.loop import Trainer

pytestmark = pytest.mark.usefixtures('no_mesh_left')

MODEL = presets.small(num_layers=1, width=16, head_size=8, mlp_size=16)


def bandit(**fields):
  """All eight contexts in every step."""
  config = configuration.supervised(configuration.build('bandit', 'dapo'), 8)
  return dataclasses.replace(
    config,
    **{
      'iterations': 60,
      'model': ModelSource(config=MODEL),
      'optimizer': OptimizerConfig(learning_rate=3e-2),
      'evaluation': EvaluationConfig(every=4),
      'checkpoint': CheckpointConfig(every=100),
      **fields,
    },
  )


def test_it_is_the_one_loop_until_an_accuracy(tmp_path, rows_of):
  """From log(18) = 2.9 nats to half of the answers; a done run stays done."""
  stopping = StoppingConfig(
    metric='evaluation/pass_at_1', patience=None, target=0.5
  )
  row = Trainer(bandit(stopping=stopping), str(tmp_path)).run()
  rows = rows_of(tmp_path)
  accuracy = {
    r['step']: r['evaluation/pass_at_1']
    for r in rows
    if 'evaluation/pass_at_1' in r
  }
  reached = [step for step, x in accuracy.items() if x >= 0.5]
  assert reached == [row['step'] - 1] and row['step'] < 60
  assert row['train/nll'] < rows[1]['train/nll'] < 3.0
  assert row['rollout/length'] == 2  # the answer and the end token
  Trainer(bandit(stopping=stopping), str(tmp_path)).run()
  assert rows_of(tmp_path) == rows


@pytest.mark.slow
def test_a_stopped_run_continues_exactly(tmp_path, rows_of):
  """E0: 6 steps = 4 and 2, in new orders of the contexts."""
  whole, cut = tmp_path / 'whole', tmp_path / 'cut'
  Trainer(bandit(iterations=6), str(whole)).run()
  Trainer(bandit(iterations=4), str(cut)).run()
  Trainer(bandit(iterations=6), str(cut)).run()
  assert rows_of(whole) == rows_of(cut)
