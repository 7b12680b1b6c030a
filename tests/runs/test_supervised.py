"""Supervised training: rows, order, likelihood, and resume."""

import dataclasses
import itertools
import signal

import jax
import numpy as np
import pytest

from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.models import ModelConfig
from rl_jax.models.source import ModelSource
from rl_jax.records.metrics import read_jsonl
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.runs import policy as policy_lib
from rl_jax.runs import supervised
from rl_jax.runs import supervised_fit as fit_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.tasks import Bandit
from rl_jax.types import ENVIRONMENT, PAD, POLICY

MODEL = ModelConfig(
  vocab_size=1,
  num_layers=1,
  width=16,
  num_heads=2,
  num_kv_heads=2,
  head_size=8,
  mlp_size=16,
)


@pytest.fixture(scope='module', autouse=True)
def mesh():
  """One device, in force for this module only."""
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  with jax.set_mesh(mesh):
    yield mesh


def make_trainer(mesh, **fields):
  """A trainer of the bandit from the same initial weights."""
  policy = policy_lib.load(ModelSource(config=MODEL), Bandit(), 0, mesh)
  optimizer = OptimizerConfig(learning_rate=3e-2)
  return supervised.SupervisedTrainer(policy, optimizer, mesh, **fields)


def prompts():
  """All contexts of the bandit."""
  tokenizer = policy_lib.task_tokenizer(Bandit())
  return PromptSet(Bandit(), 'train', tokenizer, 1)


def test_rows_hold_the_targets():
  """Right-padded responses whose tokens count as the policy's own."""
  arrays = (np.ones((2, 1), np.int32), np.ones((2, 1)), np.array([4, 9]))
  rows = supervised.supervised_rows(arrays, [[5, 1], [6]], 3)
  np.testing.assert_array_equal(rows.response_BT, [[5, 1, 0], [6, 0, 0]])
  np.testing.assert_array_equal(rows.mask_BT, [[1, 1, 0], [1, 0, 0]])
  np.testing.assert_array_equal(
    rows.kind_BT, [[POLICY, POLICY, PAD], [POLICY, PAD, PAD]]
  )
  assert rows.length_B.tolist() == [2, 1] and rows.group_size == 1
  with pytest.raises(ValueError, match='target 4 has 2 tokens.* = 1'):
    supervised.supervised_rows(arrays, [[5, 1], [6]], 1)


def test_targets_are_closed_by_the_end_token():
  """The policy must learn to stop."""
  rows = fit_lib.pair_rows(prompts(), np.array([3]), 2)
  answer = prompts().tokenizer.encode(Bandit().example('train', 3).answer)
  assert rows.response_BT[0].tolist() == [*answer, 1]
  assert rows.mask_BT.tolist() == [[1, 1]]


def test_turns_of_others_are_not_trained():
  """Of a recorded conversation; without it all tokens are."""
  arrays = (np.ones((1, 1), np.int32), np.ones((1, 1)), np.array([4]))
  trained = [[True, False, True]]
  rows = supervised.supervised_rows(arrays, [[5, 6, 1]], 4, trained)
  assert rows.mask_BT.tolist() == [[1, 0, 1, 0]]
  assert rows.kind_BT.tolist() == [[POLICY, ENVIRONMENT, POLICY, PAD]]


def test_batches_are_passes_in_new_orders():
  """Batches of 3 from 5: whole passes, one after the other, by seed (E0)."""

  def take(seed, count=10):
    batches = supervised.shuffled_batches(5, 3, seed)
    return np.concatenate(list(itertools.islice(batches, count)))

  ids = take(0)
  passes = ids.reshape(6, 5)
  np.testing.assert_array_equal(np.sort(passes), np.tile(np.arange(5), (6, 1)))
  assert len({tuple(p) for p in passes}) > 1
  np.testing.assert_array_equal(ids, take(0))
  assert (ids != take(1)).any()


class Evaluations:
  """Stands for evaluation: a script of accuracies; counts its calls."""

  def __init__(self, *accuracies):
    self.accuracies = list(accuracies)

  def __call__(self, params):
    return {'pass_at_1': self.accuracies.pop(0)}


CONFIG = fit_lib.FitConfig(
  batch_size=8, max_steps=8, evaluate_every=4, max_response_tokens=2
)


@pytest.fixture(scope='module')
def whole(mesh, tmp_path_factory):
  """Eight steps at once: (trainer, row, workdir)."""
  workdir = tmp_path_factory.mktemp('whole')
  trainer = make_trainer(mesh)
  row = fit_lib.fit(trainer, prompts(), CONFIG, str(workdir), Evaluations(0, 1))
  return trainer, row, workdir


def test_training_raises_the_likelihood(whole):
  """From log(18) = 2.9 nats of the untrained model towards 0."""
  _, row, workdir = whole
  first, last = read_jsonl(workdir / 'metrics.jsonl')
  assert last == row and (first['step'], last['step']) == (4, 8)
  assert 0 < last['train/nll'] < first['train/nll'] < 2.9


def test_a_stopped_fit_continues_exactly(whole, mesh, tmp_path):
  """E0: 8 steps = 4, SIGTERM, a new trainer, 4; a done one adds none."""
  trainer, row, _ = whole
  first = make_trainer(mesh)

  def interrupt(params):
    signal.raise_signal(signal.SIGTERM)
    return {'pass_at_1': 0.0}

  with pytest.raises(SystemExit) as left:
    fit_lib.fit(first, prompts(), CONFIG, str(tmp_path), interrupt)
  assert left.value.code == 143
  second = make_trainer(mesh)
  fit_lib.fit(second, prompts(), CONFIG, str(tmp_path), Evaluations(1.0))
  jax.tree.map(
    np.testing.assert_array_equal, second.state.params, trainer.state.params
  )
  steps = [r['step'] for r in read_jsonl(tmp_path / 'metrics.jsonl')]
  assert steps == [4, 8]
  done = make_trainer(mesh)
  again = fit_lib.fit(done, prompts(), CONFIG, str(tmp_path), Evaluations())
  assert again['step'] == 8 and int(done.state.step) == 8
  assert again['train/nll'] == row['train/nll']


def test_fit_stops_at_the_accuracy(whole, mesh, tmp_path):
  """The first evaluation at or above it ends the stage, and it stays done."""
  trainer = make_trainer(mesh)
  config = dataclasses.replace(CONFIG, stop_accuracy=0.45, evaluate_every=1)
  row = fit_lib.fit(
    trainer, prompts(), config, str(tmp_path), Evaluations(0.1, 0.45, 0.0)
  )
  assert row['step'] == 2


@pytest.mark.slow
def test_microbatches_change_no_likelihood(whole, mesh):
  """E1: the mean is over the tokens of the batch, in 1 or 4 pieces."""
  rows = fit_lib.pair_rows(prompts(), np.arange(8), 2)
  metrics = [make_trainer(mesh, microbatches=m).step(rows) for m in (1, 4)]
  for name in ('train/nll', 'train/grad_norm'):
    np.testing.assert_allclose(metrics[1][name], metrics[0][name], rtol=1e-5)
