"""Whole runs on the bandit: exact resume, few host reads, guards, learning."""

import collections
import dataclasses
import shutil
from typing import ClassVar

from flax import struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import bandit
from rl_jax.config import validate
from rl_jax.method import Method
from rl_jax.models import packing
from rl_jax.overrides import add_piece, override
from rl_jax.pieces import losses
from rl_jax.pieces.aggregation import TokenMean
from rl_jax.pieces.policies import Average
from rl_jax.records.checkpoints.checkpointer import Checkpointer
from rl_jax.records.metrics import read_jsonl
from rl_jax.runs import guards, loop
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.callbacks import Callback, Callbacks
from rl_jax.runs.counters import Counters
from rl_jax.runs.row_watch import RowWatch
from rl_jax.runtime import mesh, profiling
from rl_jax.tasks import Arithmetic, QuestionAnswer

HALF = 20


@pytest.fixture(scope='module', autouse=True)
def no_mesh_left():
  """Trainer puts a mesh in force; other modules must not see it."""
  devices = jax.devices()[:1]
  with jax.set_mesh(mesh.make_mesh(mesh.MeshConfig(), devices)):
    yield


def make_config(method, **changes):
  """The bandit without evaluation; overrides by path (__ for a dot).

  Rewards are computed in this process unless a test sets workers.
  """
  config = bandit.get_config(method)
  own = {'evaluation__every': '0', 'verifier__num_workers': '0'}
  changes = {**own, **changes}
  for path, text in changes.items():
    config = override(config, path.replace('__', '.'), text)
  return config


def stripped(rows):
  """Rows of metrics without what may differ between two runs."""
  return [
    {k: v for k, v in row.items() if not k.startswith('time/')} for row in rows
  ]


COMPILED = '/jax/core/compile/backend_compile_duration'


class Costs:
  """Counts what the host reads from the devices and what it compiles."""

  def __init__(self, monkeypatch):
    self.calls = collections.Counter()
    jax.monitoring.register_event_duration_secs_listener(self._event)
    array = type(jnp.zeros(()))
    read = array._value.fget

    def counted(this):
      if this._npy_value is None:
        self.calls['arrays'] += 1
      return read(this)

    monkeypatch.setattr(array, '_value', property(counted))
    device_get = jax.device_get

    def counted_get(tree):
      self.calls['device_get'] += 1
      return device_get(tree)

    monkeypatch.setattr(jax, 'device_get', counted_get)

  def _event(self, name, seconds, **kwargs):
    self.calls['programs'] += name == COMPILED

  def close(self):
    jax.monitoring.unregister_event_duration_listener(self._event)


@pytest.fixture(scope='module')
def config(toy):
  """GRPO: groups, a reference, a KL term; evaluation and two checkpoints."""
  return make_config(
    toy.get_method('grpo'),
    iterations=str(2 * HALF),
    evaluation__every=str(HALF),
    evaluation__num_samples='2',
  )


@pytest.fixture(scope='module')
def whole(config, tmp_path_factory):
  """2N iterations: (trainer, workdir, costs of each iteration)."""
  workdir = tmp_path_factory.mktemp('whole')
  trainer = loop.Trainer(config, str(workdir))
  with pytest.MonkeyPatch.context() as monkeypatch:
    costs, counts = Costs(monkeypatch), []
    step = trainer.iteration

    def iteration():
      counts.append(costs.calls.copy())
      return step()

    trainer.iteration = iteration
    trainer.run()
    costs.close()
  steps = [b - a for a, b in zip(counts[:-1], counts[1:], strict=True)]
  return trainer, workdir, steps


@pytest.fixture(scope='module')
def halves(config, tmp_path_factory):
  """N iterations, and N more by another Trainer in the same directory."""
  workdir = tmp_path_factory.mktemp('halves')
  first = override(config, 'iterations', str(HALF))
  trainer = loop.Trainer(first, str(workdir))
  window = profiling.Window(4, 5)
  trainer.profiler = profiling.Profiler(window, str(workdir / 'profile'))
  trainer.run()
  trainer = loop.Trainer(config, str(workdir))
  assert trainer.counters.iteration == HALF
  trainer.run()
  return trainer, workdir


def test_a_resumed_run_equals_a_whole_one(whole, halves):
  """E0: parameters, moments, counters, selector, rows and rollouts."""
  (one, one_dir, *_), (two, two_dir) = whole, halves
  jax.tree.map(np.testing.assert_array_equal, two.state, one.state)
  assert two.counters == one.counters
  assert two.counters.iteration == 2 * HALF
  jax.tree.map(
    np.testing.assert_array_equal,
    two.parts.collector.selector.state,
    one.parts.collector.selector.state,
  )
  for name in ('metrics.jsonl', 'rollouts.jsonl'):
    rows = stripped(read_jsonl(one_dir / name))
    assert rows and stripped(read_jsonl(two_dir / name)) == rows


def test_checkpoints_of_both_runs_are_equal(whole, halves):
  """E0: every array on disk, by name."""
  arrays = []
  for workdir in (whole[1], halves[1]):
    saver = Checkpointer(workdir / 'checkpoints')
    arrays.append(saver.arrays(2 * HALF))
    saver.close()
  assert arrays[0].keys() == arrays[1].keys()
  assert any('selector' in name for name in arrays[0])
  for name, value in arrays[0].items():
    np.testing.assert_array_equal(arrays[1][name], value)


def test_every_iteration_has_one_row(whole):
  """Step 0 is the evaluation before training."""
  rows = read_jsonl(whole[1] / 'metrics.jsonl')
  assert [row['step'] for row in rows] == list(range(2 * HALF + 1))
  for row in rows[1:]:
    assert row['train/skipped'] == 0 and np.isfinite(row['train/grad_norm'])
    assert row['rollout/tokens_total'] <= row['step'] * 64 * 2
    assert {'policy/kl_ref', 'policy/entropy', 'reward/mean'} <= row.keys()
  evaluated = [r['step'] for r in rows if 'evaluation/pass_at_1' in r]
  assert evaluated == [0, HALF, 2 * HALF]
  assert {'evaluation/avg_at_2', 'evaluation/pass_at_2'} <= rows[0].keys()


def test_sampler_and_trainer_agree(whole):
  """float32 on a CPU: below 1e-4 nats on every token of every iteration."""
  rows = read_jsonl(whole[1] / 'metrics.jsonl')[1:]
  gaps = [row['rollout/logp_gap_max'] for row in rows]
  assert 0 < max(gaps) < 1e-4


def test_the_bandit_is_learned(whole):
  """With seed 0: from almost nothing to three of four contexts."""
  rows = read_jsonl(whole[1] / 'metrics.jsonl')
  reward = [row['reward/mean'] for row in rows[1:]]
  assert np.mean(reward[-10:]) > np.mean(reward[:10]) + 0.4
  assert rows[-1]['evaluation/pass_at_1'] >= 0.6
  assert rows[0]['evaluation/pass_at_1'] <= 0.25


def test_entropy_falls_as_the_covariance_says(whole):
  """A row's prediction and the next row's change go together."""
  rows = read_jsonl(whole[1] / 'metrics.jsonl')[1:]
  entropy = np.array([row['policy/entropy'] for row in rows], np.float32)
  change = np.array([row['policy/entropy_change'] for row in rows[1:]])
  np.testing.assert_array_equal(change.astype(np.float32), np.diff(entropy))
  predicted = [row['policy/entropy_change_predicted'] for row in rows[:-1]]
  assert np.corrcoef(predicted, change)[0, 1] > 0.5


def test_the_policy_moves_away_from_the_reference(whole):
  """KL to the initial policy starts at 0 and grows."""
  kl = [r['policy/kl_ref'] for r in read_jsonl(whole[1] / 'metrics.jsonl')[1:]]
  assert abs(kl[0]) < 1e-6 and kl[-1] > 0.05


def test_each_stage_is_compiled_once(whole):
  """Nothing is compiled after two iterations: one shape, one layout."""
  programs = [step['programs'] for step in whole[2]]
  late = [i for i, count in enumerate(programs) if i > 1 and count]
  assert programs[0] >= 3 and not late, (programs, late)


def test_the_compile_count_is_a_metric(whole):
  """Cumulative, and the same from the third iteration on."""
  rows = read_jsonl(whole[1] / 'metrics.jsonl')[1:]
  counts = [row['time/compilations'] for row in rows]
  assert 3 <= counts[0] <= counts[2] and len(set(counts[2:])) == 1, counts


def test_a_trace_of_two_iterations(halves):
  """A file for TensorBoard's profiler; resume stays exact (E0, above)."""
  traces = list((halves[1] / 'profile').rglob('*.xplane.pb'))
  assert len(traces) == 1 and traces[0].stat().st_size > 10_000


def test_host_reads_are_few_and_bounded(whole):
  """Tokens once a round and metrics once an iteration, never in pieces.

  4 arrays of the round, 2 of the selector's state on the host's own device
  (twice), its prompts, and the row of metrics; evaluation and saving besides.
  """
  steps = whole[2]
  usual = collections.Counter(step['device_get'] for step in steps)
  ((most, times),) = usual.most_common(1)
  assert most <= 4 and times >= 0.8 * len(steps)
  arrays = sorted(step['arrays'] for step in steps)
  metrics = len(read_jsonl(whole[1] / 'metrics.jsonl')[3])
  assert arrays[len(arrays) // 2] <= 4 + 5 + metrics


def test_rollouts_tell_every_token(whole):
  """E0: texts add up, and advantages have the sign of their own rewards."""
  rows = read_jsonl(whole[1] / 'rollouts.jsonl')
  gaps = {
    row['step']: row.get('rollout/logp_gap_max')
    for row in read_jsonl(whole[1] / 'metrics.jsonl')
  }
  assert [row['step'] for row in rows] == [
    step for step in range(1, 2 * HALF + 1) for _ in range(4 * 8)
  ]
  for start in range(0, len(rows), 8):  # one group
    group = rows[start : start + 8]
    mean = np.mean([row['reward'] for row in group])
    for row in group:
      tokens = row['tokens']
      assert ''.join(tokens['text']) == row['response']
      assert len({len(values) for values in tokens.values()}) == 1
      assert min(tokens['entropy']) >= 0 >= max(tokens['logp'])
      assert set(tokens['clip']) == {0.0} and 'trained' not in tokens
      signs = set(np.sign(tokens['advantage']))
      assert signs == {np.sign(row['reward'] - mean)}
      assert np.abs(tokens['logp_gap']).max() <= gaps[row['step']] * 1.001


LION = {
  'optimizer.name': 'lion',
  'optimizer.arguments': "{'weight_decay': 0.0}",
  'optimizer.schedule': 'wsd',
  'optimizer.total_steps': '3',
}
INT8 = {'optimizer.moment_dtype': 'int8', 'model.param_dtype': 'bfloat16'}


@pytest.mark.slow
@pytest.mark.parametrize('optimizer', [LION, INT8])
def test_another_optimizer_resumes_exactly(config, tmp_path, optimizer):
  """E0: Lion on a schedule that has its end by name; moments of 8 bits."""
  changes = {**optimizer, 'evaluation.every': '0', 'iterations': '3'}
  for path, text in changes.items():
    config = override(config, path, text)
  whole = loop.Trainer(config, str(tmp_path / 'whole'))
  whole.run()
  parts = str(tmp_path / 'parts')
  loop.Trainer(override(config, 'iterations', '2'), parts).run()
  resumed = loop.Trainer(config, parts)
  resumed.run()
  jax.tree.map(np.testing.assert_array_equal, resumed.state, whole.state)


def test_another_configuration_is_refused(config, whole):
  """The difference is shown before anything is loaded."""
  other = override(config, 'rollout.temperature', '0.5')
  with pytest.raises(ValueError, match='rollout.temperature: 1.0 -> 0.5'):
    loop.Trainer(other, str(whole[1]))


def test_rows_that_outgrow_the_model_are_refused(config, tmp_path):
  """Naming both numbers, before anything is compiled."""
  long = override(config, 'rollout.max_prompt_tokens', '1000000')
  with pytest.raises(ValueError, match='max_prompt_tokens .* positions'):
    loop.Trainer(long, str(tmp_path / 'run'))
  assert not (tmp_path / 'run').exists()


def test_a_penalty_that_cannot_act_is_warned_of(config, tmp_path, caplog):
  """DAPO's overlong penalty begins at 16,384 tokens."""
  piece = 'OverlongPenalty()'
  loop.Trainer(
    add_piece(config, 'method.shaping', piece), str(tmp_path)
  ).close()
  assert 'OverlongPenalty: with rollout.max_response_tokens = ' in caplog.text


def test_a_schedule_needs_no_number_of_steps(config, tmp_path):
  """It follows from the iterations, whichever is set first."""
  config = override(config, 'optimizer.schedule', 'linear')
  loop.Trainer(config, str(tmp_path)).close()


def test_a_mistake_found_late_leaves_no_configuration(config, tmp_path):
  """Prompts are checked after the mesh; the corrected command must work."""
  bad = override(config, 'model.path', str(tmp_path / 'nowhere'))
  with pytest.raises((ValueError, FileNotFoundError), match='nowhere'):
    loop.Trainer(bad, str(tmp_path / 'run'))
  assert not (tmp_path / 'run').exists()


def test_a_mistake_found_while_tracing_leaves_no_configuration(
  config, tmp_path, monkeypatch
):
  """The first iteration is the last thing that can refuse it."""
  trainer = loop.Trainer(config, str(tmp_path / 'run'))

  def refuse():
    raise ValueError('shapes differ')

  monkeypatch.setattr(trainer, 'iteration', refuse)
  with pytest.raises(ValueError, match='shapes differ'):
    trainer.run()
  assert not (tmp_path / 'run' / 'experiment.json').exists()
  other = override(config, 'optimizer.learning_rate', '0.5')
  loop.Trainer(other, str(tmp_path / 'run')).close()


@struct.dataclass(kw_only=True)
class Explosion:
  """A policy loss that is never finite."""

  role: ClassVar[str] = 'policy'
  per_token: ClassVar[bool] = True
  needs: ClassVar[tuple] = ()

  def __call__(self, stats, traj, key):
    """log(-1)."""
    return jnp.log(stats['logp'] * 0.0 - 1.0), {}


def test_a_run_of_skipped_updates_stops(tmp_path):
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
  """What a run says."""

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


@pytest.mark.slow
def test_early_stopping_is_exact(config, tmp_path):
  """A row is read earlier where the run was interrupted: the same end."""
  changes = {
    'iterations': '20',
    'evaluation.every': '0',
    'stopping.metric': 'rollout/tokens_total',
    'stopping.mode': 'min',
    'stopping.patience': '3',
  }
  for path, text in changes.items():
    config = override(config, path, text)
  loop.Trainer(config, str(tmp_path / 'whole')).run()
  parts = str(tmp_path / 'parts')
  loop.Trainer(override(config, 'iterations', '4'), parts).run()
  for _ in range(2):  # the second finds the run at its end
    loop.Trainer(config, parts).run()
  rows = [
    stripped(read_jsonl(tmp_path / x / 'metrics.jsonl'))
    for x in ('whole', 'parts')
  ]
  assert rows[0] == rows[1] and rows[0][-1]['step'] == 5


def watcher(workdir='unused', **guards):
  """Reads rows of one run."""
  config = make_config(
    Method(losses=(losses.Reinforce(),), aggregation=TokenMean()),
    **{f'guards__{k}': v for k, v in guards.items()},
  )
  rows, counters = RowWatch(config, workdir, Callbacks()), Counters()
  rows.keep_batch(1, {})

  def watch(skipped=0.0, gap=0.0):
    row = {'step': 1, 'train/skipped': skipped, 'rollout/logp_gap_max': gap}
    return rows.see(row, counters)

  return watch


def test_only_skips_in_a_row_stop_a_run(tmp_path):
  """A good iteration in between starts the count again."""
  watch = watcher(str(tmp_path), max_skipped_in_a_row='2')
  for skipped in (1.0, 0.0, 0.5, 0.0):
    watch(skipped=skipped)
  watch(skipped=1.0)
  with pytest.raises(guards.StopRunError):
    watch(skipped=1.0)


def test_a_sampler_that_disagrees_stops_a_run():
  """A gap above the limit, or one that is not a number; null: off."""
  watch = watcher(max_logp_gap='0.5')
  watch(gap=0.5)
  for gap in (0.6, float('nan')):
    with pytest.raises(guards.StopRunError, match='disagree by .* 0.5'):
      watch(gap=gap)
  watcher(max_logp_gap='null')(gap=9.0)


def test_ppo_with_adapters_minibatches_and_microbatches(
  toy, tmp_path, compiled
):
  """KL in the reward, value head, LoRA, 2 epochs of 2 minibatches of 2 pieces.

  Only adapters and value head move; steps, versions and programs are counted.
  """
  config = make_config(
    toy.get_method('ppo'),
    iterations='2',
    task__reward_weights="{'value': 1.0}",  # a signal from the start
    rollout__max_response_tokens='1',
    model__value_head='true',
    model__lora_rank='2',
    update__epochs='2',
    update__minibatch_prompts='4',
    update__microbatch_prompts='2',
  )
  trainer = loop.Trainer(config, str(tmp_path))
  before = jax.device_get((trainer.parts.policy.frozen, trainer.state.params))
  programs = compiled.copy()
  trainer.run()
  frozen, params = jax.device_get(
    (trainer.parts.policy.frozen, trainer.state.params)
  )
  assert set(frozen) == {'model'} and set(params) == {'lora', 'value_head'}
  jax.tree.map(np.testing.assert_array_equal, frozen, before[0])
  moved = jax.tree.map(lambda x, y: np.abs(x - y).max(), params, before[1])
  # With one prompt and one response token a softmax has nothing to choose.
  for name in ('wq', 'wk'):
    moved['lora']['layers'].pop(name)
  assert all(x > 1e-4 for x in jax.tree.leaves(moved))
  assert trainer.counters.optimizer_steps == 8 == int(trainer.state.step)
  first, last = read_jsonl(tmp_path / 'metrics.jsonl')
  assert first['train/skipped'] == last['train/skipped'] == 0
  assert abs(first['policy/kl_ref']) < 1e-6 < last['policy/kl_ref']
  # One program that reuses the scores, and one that does not.
  assert (compiled - programs)['update_minibatch'] == 2
  # Every logged row was in some minibatch of the last epoch.
  for row in read_jsonl(tmp_path / 'rollouts.jsonl'):
    assert row['tokens']['entropy'][0] > 0 > row['tokens']['logp'][0]


@pytest.mark.slow
def test_dynamic_sampling_in_a_whole_run(toy, tmp_path):
  """DAPO: several rounds an iteration, all groups mixed, serials counted."""
  config = make_config(
    toy.get_method('dapo'), iterations='4', rollout__max_response_tokens='1'
  )
  trainer = loop.Trainer(config, str(tmp_path))
  trainer.run()
  rows = read_jsonl(tmp_path / 'metrics.jsonl')
  rounds = [row['rollout/rounds'] for row in rows]
  assert max(rounds) > 1
  assert trainer.counters.group_serial == 8 * sum(rounds)
  assert rows[0]['batch/kept_group_fraction'] == 1
  assert rows[0]['reward/zero_variance_fraction'] == 0
  # Logged are the groups that were kept, whichever round they are from.
  logged = read_jsonl(tmp_path / 'rollouts.jsonl')
  assert all(row['weight'] == 1 for row in logged if row['step'] == 1)
  for row in logged:
    sign = (2 * row['reward'] - 1) * row['weight']
    assert np.sign(row['tokens']['advantage'][0]) == sign


@pytest.mark.slow
def test_a_lagged_copy_is_renewed_and_restored(toy, tmp_path):
  """NLPO, E0: a copy every 2 iterations; 3 + 3 iterations equal 6."""
  config = make_config(
    toy.get_method('nlpo'),
    iterations='6',
    model__value_head='true',
    method__logits__LaggedSupport__min_tokens='2',
    method__logits__LaggedSupport__period='2',
  )
  whole = loop.Trainer(config, str(tmp_path / 'whole'))
  assert whole.parts.method.logits[0].always == (0, 1)
  whole.run()
  loop.Trainer(
    override(config, 'iterations', '3'), str(tmp_path / 'parts')
  ).run()
  resumed = loop.Trainer(config, str(tmp_path / 'parts'))
  same = lambda a, b: jax.tree.map(np.testing.assert_array_equal, a, b)
  differs = jax.tree.map(
    lambda a, b: (a != b).any(),
    resumed.parts.policies.trees['lagged'],
    resumed.state.params,
  )
  assert any(jax.tree.leaves(differs))  # of iteration 2, restored in 3
  resumed.run()
  same(resumed.state, whole.state)
  same(resumed.parts.policies.trees, whole.parts.policies.trees)
  same(
    whole.parts.policies.trees['lagged'], whole.state.params
  )  # renewed after iteration 6
  gaps = [
    row['rollout/logp_gap_max']
    for row in read_jsonl(tmp_path / 'whole' / 'metrics.jsonl')
  ]
  assert len(gaps) == 6 and max(gaps) < 1e-4


@pytest.mark.slow
def test_stale_rollouts(toy, tmp_path):
  """E0: 2 + 2 iterations equal 4 whose weights of three before sample.

  So all four sample with the initial weights: what a rate of 0 samples.
  """
  config = make_config(
    toy.get_method('tis'),
    iterations='4',
    rollout__staleness='3',
    guards__max_logp_gap='null',
  )

  def run(name, config):
    trainer = loop.Trainer(config, str(tmp_path / name))
    trainer.run()
    names = ('metrics.jsonl', 'rollouts.jsonl')
    return trainer, *(stripped(read_jsonl(tmp_path / name / x)) for x in names)

  whole, rows, logged = run('whole', config)
  assert [row['rollout/steps_behind'] for row in rows] == [0, 1, 2, 3]
  gaps = [row['rollout/logp_gap_max'] for row in rows]
  assert gaps[0] < 1e-4 and gaps[3] > 1e-2
  *_, initial = run('initial', override(config, 'optimizer.learning_rate', '0'))
  texts, others = ([x['response'] for x in rows] for rows in (logged, initial))
  assert texts == others and len(set(texts)) > 1
  run('parts', override(config, 'iterations', '2'))
  resumed, *found = run('parts', config)
  assert found == [rows, logged]
  same = lambda a, b: jax.tree.map(np.testing.assert_array_equal, a, b)
  same((resumed.state, resumed.lagged), (whole.state, whole.lagged))
  assert [step for _, step in resumed.lagged] == [1, 2, 3]


@pytest.mark.slow
def test_a_rollout_in_parts(toy, tmp_path):
  """E2 in tokens, E1 in metrics; another number may be taken on resume."""
  config = make_config(
    toy.get_method('mopps'), iterations='4', verifier__num_workers='2'
  )

  def run(name, *changes):
    now = config
    for path, text in changes:
      now = override(now, path, text)
    loop.Trainer(now, str(tmp_path / name)).run()
    names = ('metrics.jsonl', 'rollouts.jsonl')
    return (stripped(read_jsonl(tmp_path / name / x)) for x in names)

  rows, texts = run('whole')
  run('parts', ('rollout.parts', '4'), ('iterations', '2'))
  found, responses = run('parts', ('rollout.parts', '2'))
  for one, other in zip(found, rows, strict=True):
    assert one.keys() == other.keys()
    for name, value in other.items():
      np.testing.assert_allclose(one[name], value, 1e-3, 1e-5, err_msg=name)
  told = ('step', 'prompt_id', 'response', 'reward', 'error')
  for one, other in zip(responses, texts, strict=True):
    assert [one[name] for name in told] == [other[name] for name in told]


@pytest.mark.slow
def test_segment_values_learn_the_bandit(toy, tmp_path):
  """SPO chain: rounds of continuations are counted, and their groups."""
  config = make_config(
    toy.get_method('spo_chain'), iterations='40', method__rollout__interval='1'
  )
  trainer = loop.Trainer(config, str(tmp_path))
  row = trainer.run()
  rows = read_jsonl(tmp_path / 'metrics.jsonl')
  rounds = [row['rollout/rounds'] for row in rows]
  assert max(rounds) == 3  # two tokens: the prompt and the first of them
  groups = config.rollout.num_prompts * sum(rounds)
  assert trainer.counters.group_serial == groups
  assert row['reward/mean'] > rows[0]['reward/mean'] + 0.3


@pytest.mark.slow
def test_packed_runs(toy, tmp_path, monkeypatch):
  """E2 for the tokens, E1 for the metrics of an iteration, packed or not.

  E0: 2 + 2 iterations equal 4, packed and plain ones in turn.
  """
  monkeypatch.setattr(packing, 'SHORTEST', 2)
  capacity, chosen = packing.capacity, []

  def spy(length_NG, tokens):
    chosen.append(capacity(length_NG, tokens))
    return chosen[-1]

  monkeypatch.setattr(packing, 'capacity', spy)
  config = dataclasses.replace(
    make_config(
      toy.get_method('grpo'),
      iterations='4',
      rollout__max_response_tokens='6',
      rollout__stop="('1', '3', '4', '7', '26')",
      guards__log_rollouts='8',
    ),
    task=Arithmetic(digits=1),
  )
  config = override(config, 'rollout.max_prompt_tokens', '4')

  def run(name, path='update.pack', text='true'):
    trainer = loop.Trainer(override(config, path, text), str(tmp_path / name))
    trainer.run()
    files = ('metrics.jsonl', 'rollouts.jsonl')
    rows = [stripped(read_jsonl(tmp_path / name / file)) for file in files]
    return trainer.state, *rows

  state, rows, rollouts = run('whole')
  assert chosen[0] == 20 and set(chosen) == {20, None}  # of 8 * 5 places
  run('halves', 'iterations', '2')
  half_state, *half_rows = run('halves')
  assert half_rows == [rows, rollouts]
  jax.tree.map(np.testing.assert_array_equal, half_state, state)
  count = len(chosen)
  _, plain_rows, plain_rollouts = run('plain', text='false')
  assert len(chosen) == count
  for name, value in plain_rows[0].items():
    np.testing.assert_allclose(rows[0][name], value, 1e-5, 1e-5, err_msg=name)
  for one, other in zip(rollouts, plain_rollouts, strict=True):
    if one['step'] == 1:
      assert one['response'] == other['response']


def test_what_pieces_keep_and_learn_is_restored(toy, tmp_path):
  """E0: 2 + 2 iterations equal 4, with a coefficient and a learned exponent as
  state, and a reference that is the average of the policies so far."""
  method = toy.get_method('adaptive_kl')
  (_, adaptive) = method.losses
  method = method.replace(
    losses=(losses.LengthPreference(), adaptive.replace(target=1e-4)),
    reference=Average(decay=0.5),
  )
  config = make_config(method, iterations='4')
  whole = loop.Trainer(config, str(tmp_path / 'whole'))
  whole.run()
  loop.Trainer(
    override(config, 'iterations', '2'), str(tmp_path / 'parts')
  ).run()
  resumed = loop.Trainer(config, str(tmp_path / 'parts'))
  resumed.run()
  same = lambda a, b: jax.tree.map(np.testing.assert_array_equal, a, b)
  same(resumed.state, whole.state)
  same(resumed.parts.policies.trees, whole.parts.policies.trees)
  beta = whole.state.method_state['losses.1.AdaptiveKL']['beta']
  learned = whole.state.params['pieces']['losses.0.LengthPreference']
  assert beta != adaptive.start and learned['exponent'] != 0
  rows = read_jsonl(tmp_path / 'whole' / 'metrics.jsonl')
  # The reference follows: by half of every step, so the divergence stays.
  assert 0 < rows[-1]['policy/kl_ref'] < 1


def test_a_verifier_on_the_device_trains_the_same_run(toy, tmp_path):
  """E0: rewards from tokens or from text, greedy evaluation and state alike."""
  rows, states = [], []
  for on_device in ('false', 'true'):
    config = make_config(
      toy.get_method('mopps'),
      iterations='3',
      evaluation__every='3',
      verifier__on_device=on_device,
    )
    trainer = loop.Trainer(config, str(tmp_path / on_device))
    trainer.run()
    states.append(trainer.state)
    rows.append(stripped(read_jsonl(tmp_path / on_device / 'metrics.jsonl')))
  assert rows[0] == rows[1] and len(rows[0]) == 4
  jax.tree.map(np.testing.assert_array_equal, *states)


def test_a_device_verifier_is_refused_where_text_is_judged(toy):
  """Before anything is compiled, naming the field."""
  on_device = {'verifier__on_device': 'true'}
  config = make_config(toy.get_method('grpo'), **on_device)
  validate(config)
  for path, text, match in (
    ('verifier.num_workers', '2', 'verifier.num_workers = 2 with'),
    ('rollout.stop', '("a",)', 'rollout.stop = .* with verifier.on_device'),
  ):
    with pytest.raises(ValueError, match=match):
      validate(override(config, path, text))
  task = QuestionAnswer(sources={'train': 'rows.jsonl'})
  with pytest.raises(ValueError, match='QuestionAnswer has no device verifier'):
    validate(dataclasses.replace(config, task=task))
