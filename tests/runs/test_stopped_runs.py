"""Runs that a guard, a callback or a limit of time stops."""

import shutil

from flax import struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.method import Method
from rl_jax.overrides import override
from rl_jax.pieces import losses
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.roles import Loss, LossContext, LossOut
from rl_jax.records.checkpoints.checkpointer import Checkpointer
from rl_jax.records.metrics import read_jsonl
from rl_jax.runs import guards, loop
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.callbacks import Callback, Callbacks
from rl_jax.runs.counters import Counters
from rl_jax.runs.row_watch import RowWatch
from rl_jax.runtime.writer import sole_writer
from rl_jax.worlds import Bandit

pytestmark = pytest.mark.usefixtures('no_mesh_left')


@struct.dataclass(kw_only=True)
class Explosion(Loss):
  """A policy loss that is never finite."""

  per_token = True

  def __call__(self, ctx: LossContext) -> LossOut:
    """log(-1)."""
    return LossOut(jnp.log(ctx.stats['logp'] * 0.0 - 1.0), {})


def test_a_run_of_skipped_updates_stops(make_config, tmp_path):
  """After the number that the guard allows, with the weights of before."""
  config = make_config(
    Method(losses=(Explosion(),), aggregation=TokenMean()),
    guards__max_skipped_in_a_row='2',
    rollout__num_prompts='2',
    rollout__group_size='1',
  )
  trainer = loop.Trainer(config, str(tmp_path))
  before = jax.device_get(trainer.state.params)
  with pytest.raises(guards.StopRunError, match='2 iterations in a row'):
    trainer.run()  # closes its files and workers also when it raises
  rows = read_jsonl(tmp_path / 'metrics.jsonl')
  assert [row['train/skipped'] for row in rows] == [1, 1]
  for step in (1, 2):
    with np.load(tmp_path / f'skipped_{step}.npz') as batch:
      assert batch['response_BT'].shape == batch['advantages_BT'].shape
  assert np.isnan(rows[-1]['train/loss'])
  jax.tree.map(
    np.testing.assert_array_equal, jax.device_get(trainer.state.params), before
  )


def test_a_short_run_without_a_judged_sample_is_an_error(
  make_config, tmp_path, monkeypatch
):
  """All rows are written; the same command again says the same."""

  def reward(*_):
    raise KeyError('gold')

  monkeypatch.setattr(Bandit, 'reward', reward)
  config = make_config(
    Method(losses=(losses.PPOClip(),), aggregation=TokenMean()),
    iterations='2',
    rollout__num_prompts='2',
    rollout__group_size='1',
  )
  for _ in range(2):
    trainer = loop.Trainer(config, str(tmp_path))
    with pytest.raises(guards.StopRunError, match="last .*KeyError: 'gold'"):
      trainer.run()
  rows = read_jsonl(tmp_path / 'metrics.jsonl')
  assert [row['rollout/reward_errors'] for row in rows] == [2, 2]


def test_a_stopped_run_goes_on_with_a_relaxed_guard(config, tmp_path):
  """From its last checkpoint; the rate of the rest is changed by name."""
  config = override(config, 'iterations', '4')
  config = override(config, 'checkpoint.every', '2')
  config = override(config, 'evaluation.every', '0')
  strict = override(config, 'guards.max_logp_gap', '1e-12')
  loop.Trainer(override(config, 'iterations', '2'), str(tmp_path)).run()
  with pytest.raises(guards.StopRunError, match='max_logp_gap'):
    loop.Trainer(strict, str(tmp_path)).run()
  config = override(config, 'optimizer.learning_rate', '0.5')
  field = 'optimizer.learning_rate'
  last = loop.Trainer(config, str(tmp_path), allow_change=[field]).run()
  rows = read_jsonl(tmp_path / 'metrics.jsonl')
  assert last == rows[-1]
  finished = loop.Trainer(config, str(tmp_path), allow_change=[field])
  assert finished.run() == last
  assert [row['step'] for row in rows] == [1, 2, 3, 4]
  assert [row.get(f'changed/{field}') for row in rows] == [None] * 2 + [
    0.5,
    None,
  ]


class Recorder(Callback):
  """The output of a run."""

  def __init__(self):
    self.seen = []

  def on_start(self, trainer):
    self.seen.append(('start', trainer.counters.iteration))

  def on_iteration(self, step, row):
    assert float(jnp.float32(row['reward/mean'])) >= 0  # transfers are allowed
    self.seen.append(('iteration', step))
    return step == 6

  def on_save(self, step, row):
    self.seen.append(('save', step))

  def on_end(self, step, row):
    self.seen.append(('end', step))


def test_best_checkpoints_weights_callbacks_and_limits(
  config, tmp_path, caplog
):
  """One run: saves off its rhythm, own code, a time limit, a deleted folder."""
  changes = {
    'iterations': '9',
    'checkpoint.every': '100',
    'checkpoint.keep_last': '1',
    'checkpoint.weights_every': '3',
    'evaluation.every': '2',
    'evaluation.num_samples': '0',
  }
  for path, text in changes.items():
    config = override(config, path, text)
  workdir, recorder = str(tmp_path), Recorder()
  trainer = loop.Trainer(config, workdir, callbacks=[recorder])
  trainer.run()  # which the callback ends: row 6 is read after iteration 7
  rows = read_jsonl(tmp_path / 'metrics.jsonl')
  accuracy = {
    row['step']: row['evaluation/pass_at_1']
    for row in rows
    if row['step'] and 'evaluation/pass_at_1' in row
  }
  assert list(accuracy) == [2, 4, 6]
  best = max(accuracy, key=lambda step: (accuracy[step], -step))
  saver = Checkpointer(tmp_path / 'checkpoints')
  assert saver.best_step() == best and saver.steps()[-1] == 7
  weights = Checkpointer(tmp_path / 'weights')
  assert weights.steps() == [3, 6]
  assert all('.params.' in name for name in weights.arrays(6))
  for one in (saver, weights):
    one.close()
  saves = [step for what, step in recorder.seen if what == 'save']
  assert recorder.seen[0] == ('start', 0) and recorder.seen[-1] == ('end', 7)
  assert saves[-1] == 7 and best in saves and 3 not in saves
  assert [s for what, s in recorder.seen if what == 'iteration'] == [
    *range(1, 8)
  ]
  limited = override(config, 'stopping.session_seconds', '1e-9')
  with pytest.raises(SystemExit) as ended:
    loop.Trainer(limited, workdir).run()
  assert ended.value.code == 143
  assert read_jsonl(tmp_path / 'metrics.jsonl')[-1]['step'] == 8
  _, at_3, _ = policy_lib.load_checkpoint(workdir, trainer.parts.mesh, 3)
  with pytest.raises(ValueError, match=f'{workdir} has no .* 5; .*: 3, .*8$'):
    policy_lib.load_checkpoint(workdir, trainer.parts.mesh, 5)
  shutil.rmtree(tmp_path / 'checkpoints')
  _, at_6, _ = policy_lib.load_checkpoint(workdir, trainer.parts.mesh)
  embed = [np.asarray(x['model']['embed']) for x in (at_3, at_6)]
  assert np.abs(embed[0] - embed[1]).max() > 0
  loop.Trainer(config, workdir).close()
  for name in ('metrics.jsonl', 'rollouts.jsonl', 'weights'):
    assert (tmp_path / f'{name}.1').exists() and f'{name}.1' in caplog.text
  assert (tmp_path / 'weights.1' / 'step_00000006').exists()


def watcher(make_config, workdir='unused', **guards):
  """Reads rows of one run."""
  config = make_config(
    Method(losses=(losses.Reinforce(),), aggregation=TokenMean()),
    **{f'guards__{k}': v for k, v in guards.items()},
  )
  rows = RowWatch(config, workdir, Callbacks(), sole_writer())
  counters = Counters()
  rows.keep_batch(1, {})

  def watch(skipped=0.0, gap=0.0):
    row = {'step': 1, 'train/skipped': skipped, 'rollout/logp_gap_max': gap}
    return rows.see(row, counters)

  return watch


def test_only_skips_in_a_row_stop_a_run(make_config, tmp_path):
  """A good iteration in between starts the count again."""
  watch = watcher(make_config, str(tmp_path), max_skipped_in_a_row='2')
  for skipped in (1.0, 0.0, 0.5, 0.0):
    watch(skipped=skipped)
  watch(skipped=1.0)
  with pytest.raises(guards.StopRunError):
    watch(skipped=1.0)


def test_a_sampler_that_disagrees_stops_a_run(make_config):
  """A gap above the limit, or one that is not a number; null: off."""
  watch = watcher(make_config, max_logp_gap='0.5')
  watch(gap=0.5)
  for gap in (0.6, float('nan')):
    with pytest.raises(guards.StopRunError, match='disagree by .* 0.5'):
      watch(gap=gap)
  watcher(make_config, max_logp_gap='null')(gap=9.0)
