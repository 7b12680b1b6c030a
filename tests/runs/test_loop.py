"""Whole runs on the bandit: equal halves, few host reads, refusals."""

import collections
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.config import validate
from rl_jax.overrides import add_piece, override
from rl_jax.records.checkpoints.checkpointer import Checkpointer
from rl_jax.records.metrics import read_jsonl
from rl_jax.runs import loop
from rl_jax.runtime import profiling
from rl_jax.tasks import QuestionAnswer

pytestmark = pytest.mark.usefixtures('no_mesh_left')

HALF = 20
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


def test_a_resumed_run_equals_a_whole_one(stripped, whole, halves):
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


def test_ppo_with_adapters_minibatches_and_microbatches(
  make_config, toy, tmp_path, compiled
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
def test_dynamic_sampling_in_a_whole_run(make_config, toy, tmp_path):
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
def test_segment_values_learn_the_bandit(make_config, toy, tmp_path):
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


def test_a_verifier_on_the_device_trains_the_same_run(
  make_config, stripped, toy, tmp_path
):
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


def test_a_device_verifier_is_refused_where_text_is_judged(make_config, toy):
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
