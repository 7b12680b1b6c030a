"""Whole runs as one program are the runs of the loop."""

import dataclasses
import types

import jax
import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax.config import EvaluationConfig
from rl_jax.models.tokenizer import CharTokenizer
from rl_jax.records.metrics import METRICS, read_jsonl
from rl_jax.runs import loop
from rl_jax.runs.scanned import evaluation, program, responses

pytestmark = pytest.mark.usefixtures('no_mesh_left')

ITERATIONS = 5


def make_config(method, seed=0, *sets):
  """A small bandit run without evaluation."""
  return configuration.build(
    'bandit',
    method,
    [
      'evaluation.every=0',
      f'iterations={ITERATIONS}',
      f'seed={seed}',
      *sets,
    ],
  )


def loop_run(config, workdir):
  """(tokens [I, B, T], rows of metrics) of the ordinary loop."""
  trainer = loop.Trainer(config, str(workdir))
  tokens, rows = [], []
  with jax.set_mesh(trainer.parts.mesh):
    for i in range(config.iterations):
      rows.append(jax.device_get(trainer.iteration()))
      tokens.append(np.asarray(trainer.watch._batches[i + 1].response_BT))
  trainer.close()
  return np.stack(tokens), rows


def assert_same_run(config, workdir, tokens, rows):
  """E2 in tokens (no draw lies on a boundary here), E1 in rewards and losses.

  Five Adam steps separate the last row from the first: a looser tolerance.
  """
  loop_tokens, loop_rows = loop_run(config, workdir)
  np.testing.assert_array_equal(tokens, loop_tokens)
  for expected, found in zip(loop_rows, rows, strict=True):
    assert found.pop('step') > 0
    names = {name for name in expected if not name.startswith('time/')}
    assert names == {name for name in found if not name.startswith('time/')}
    for name in names:
      np.testing.assert_allclose(
        found[name], expected[name], rtol=1e-3, atol=1e-5, err_msg=name
      )


def whole(configs, **kwargs):
  """(tokens [S, I, B, T], metrics) of one program."""
  runs = program.WholeRuns(configs, **kwargs)
  metrics, _, tokens = runs.run(keep=lambda traj: traj.response_BT)
  return tokens, metrics


def by_stages(configs):
  """The same from programs for the stages."""
  runs = program.WholeRuns(configs)
  metrics, _, tokens = runs.run_by_stages(keep=lambda traj: traj.response_BT)
  return tokens, metrics


@pytest.mark.slow
def test_five_iterations_are_those_of_the_loop(tmp_path):
  """Two seeds and rates in one program; the second against the loop, E2."""
  rate = 'optimizer.learning_rate=0.02'  # the program is built from 0.01
  configs = [make_config('rloo', 0), make_config('rloo', 1, rate)]
  tokens, metrics = whole(configs)
  assert metrics['reward/mean'].shape == (2, ITERATIONS)
  assert (tokens[0] != tokens[1]).any()
  rows = program.rows(metrics, 1, every=0)
  assert_same_run(configs[1], tmp_path, tokens[1], rows)


@pytest.mark.slow
def test_stale_rollouts_are_those_of_the_loop(tmp_path):
  """E2 in tokens, E1 in numbers: a lag of two iterations, two steps in each."""
  sets = (
    'rollout.staleness=2',
    'guards.max_logp_gap=null',
    'update.minibatch_prompts=4',
  )
  config = make_config('icepop', 0, *sets)
  tokens, metrics = whole([config])
  rows = program.rows(metrics, 0, every=0)
  behind = [row['rollout/steps_behind'] for row in rows]
  assert behind == [0, 2, 4, 4, 4]
  assert_same_run(config, tmp_path, tokens[0], rows)


@pytest.mark.slow
def test_stages_are_the_whole_program():
  """E2 in tokens, E1 in numbers: two rates, evaluations, a lagged copy."""
  sets = (
    'evaluation.every=2',
    'model.value_head=True',
    'method.logits.LaggedSupport.period=2',
    'update.minibatch_prompts=4',
  )
  rate = 'optimizer.learning_rate=0.02'
  configs = [
    make_config('nlpo', s, *sets, *r) for s, r in ((0, ()), (1, [rate]))
  ]
  tokens, metrics = whole(configs)
  staged, found = by_stages(configs)
  np.testing.assert_array_equal(staged, tokens)
  assert found.keys() == metrics.keys()
  for name in set(found) - {'time/iteration_seconds'}:
    np.testing.assert_allclose(
      found[name], metrics[name], rtol=1e-3, atol=1e-5, err_msg=name
    )


@pytest.mark.slow
@pytest.mark.parametrize(
  ('config', 'method', 'sets'),
  [
    ('keydoor', 'gigpo', ()),
    (
      'planned_keydoor',
      'hiper',
      ('model.value_head=True', 'model.num_values=3'),
    ),
  ],
)
def test_episodes_are_those_of_the_loop(tmp_path, config, method, sets):
  """E1: names and values; rewards by turn, states, evaluations."""
  config = configuration.build(
    config,
    method,
    [
      f'iterations={ITERATIONS}',
      'model.config.num_layers=1',
      'model.config.width=16',
      'rollout.num_prompts=4',
      'rollout.max_response_tokens=40',
      'update.minibatch_prompts=2',
      'evaluation.every=5',
      'evaluation.num_prompts=4',
      *sets,
    ],
  )
  loop.Trainer(config, str(tmp_path)).run()
  _, metrics = whole([config])
  assert_same_rows(metrics, read_jsonl(tmp_path / METRICS), every=5)
  assert metrics['episode/turns'].max() > 3


@pytest.mark.slow
def test_recorded_episodes_are_those_of_the_loop(tmp_path):
  """E2 in tokens, E1 in numbers; played episodes are those of the evaluation.

  Losses of held-out rows are measured only in the loop.
  """
  config = configuration.build(
    'recorded_haggling',
    'ilql',
    [
      f'iterations={ITERATIONS}',
      'model.config.num_layers=1',
      'rollout.num_prompts=4',
      'rollout.recorded_prompts=4',
      'update.minibatch_prompts=2',
      'evaluation.every=5',
      'evaluation.num_prompts=4',
      'task.num_train=20',
    ],
  )
  tokens, metrics = whole([config])
  trained = dataclasses.replace(config, evaluation=EvaluationConfig(every=0))
  loop_tokens, _ = loop_run(trained, tmp_path / 'tokens')
  np.testing.assert_array_equal(tokens[0], loop_tokens)
  loop.Trainer(config, str(tmp_path / 'rows')).run()
  rows = read_jsonl(tmp_path / 'rows' / METRICS)
  held_out = {'evaluation/loss', 'evaluation/train/nll'}
  held_out |= {name for name in rows[-1] if 'evaluation/value/' in name}
  rows = [{n: row[n] for n in row if n not in held_out} for row in rows]
  assert_same_rows(metrics, rows, every=5)
  assert rows[-1]['rollout/tokens_total'] == 0  # nothing is sampled


def test_its_evaluation_goes_through_the_slots(monkeypatch):
  """The evaluation uses the slots, as the Evaluator does."""

  def generate(*args, slots, **kwargs):
    raise LookupError(f'{slots} slots')

  monkeypatch.setattr(responses, 'generate', generate)
  config = make_config('grpo', 0, 'rollout.slots=4')
  jitted = evaluation.JittedEvaluation(config, None, CharTokenizer('ab'))
  empty = types.SimpleNamespace(response_BT=np.zeros((1, 3)))
  prompts = types.SimpleNamespace(start=lambda *_: empty)
  with pytest.raises(LookupError, match='4 slots'):
    jitted(prompts, None)


def test_what_cannot_be_jitted_is_refused_with_a_reason():
  """Before anything is compiled; the sentence names the field."""
  cases = {
    'method.group_filter: dynamic sampling': make_config('dapo'),
    'method.rollout: SegmentValues reads': make_config('spo_chain'),
    'worker processes': make_config('grpo', 0, 'verifier.num_workers=2'),
    'mesh': make_config('grpo', 0, 'mesh.data=8'),
    'rollout.speculative: drafts': make_config(
      'grpo', 0, 'rollout.speculative=PromptLookup()'
    ),
    'evaluation.beams: beam search': make_config(
      'grpo', 0, 'evaluation.beams=2'
    ),
    'only the end token': make_config('grpo', 0, "rollout.stop=('a',)"),
    'stopping.metric: rows': make_config(
      'grpo', 0, 'stopping.metric=policy/entropy'
    ),
    'a mixture of data': make_config('grpo', 0, 'rollout.recorded_prompts=1'),
  }
  for reason, config in cases.items():
    assert reason in program.refusal(config)
  with pytest.raises(ValueError, match='method.group_filter'):
    program.WholeRuns([cases['method.group_filter: dynamic sampling']])
  task = configuration.build('gsm8k', 'grpo').task
  config = dataclasses.replace(make_config('grpo'), task=task)
  assert 'no device verifier' in program.refusal(config)
  games = configuration.build('kuhn', 'spiral')
  assert 'OpenSpiel answer on the host' in program.refusal(games)
  assert program.refusal(make_config('grpo')) is None


def test_only_seed_rate_and_floats_of_the_method_may_differ():
  """The error names what else does; floats of `logits` are compiled in."""
  base = make_config('nlpo')
  key = program.program_key
  sets = ('method.losses.PPOClip.clip_low=0.1', 'optimizer.learning_rate=0.1')
  together = make_config('nlpo', 3, *sets)
  assert key(base) == key(together)
  name = type(base.method.logits[0]).__name__
  for other in (
    make_config('nlpo', 0, 'optimizer.b1=0.1'),
    make_config('nlpo', 0, 'task.seed=1'),
    make_config('nlpo', 0, f'method.logits.{name}.p=0.5'),
    make_config('grpo'),
  ):
    assert key(base) != key(other)
  with pytest.raises(ValueError, match='optimizer.b1: 0.9 -> 0.1'):
    program.WholeRuns(
      [
        make_config('grpo'),
        make_config('grpo', 1, 'optimizer.b1=0.1'),
      ]
    )


@pytest.mark.slow
def test_values_of_hyperparameters_run_side_by_side():
  """E2: each run of a vmapped program is the run by itself; the values
  count.
  """
  path = 'method.losses.KLPenalty.coef'
  configs = [make_config('grpo', 0, f'{path}={x}') for x in (0.0, 1.0)]
  tokens, metrics = whole(configs, vectorize=True)
  assert abs(np.diff(metrics['policy/kl_ref'][:, -1])) > 1e-4
  for i, config in enumerate(configs):
    alone, _ = whole([config])
    np.testing.assert_array_equal(tokens[i], alone[0])


def test_each_run_begins_with_what_is_its_own():
  """E0: weights below adapters, and states that floats of the method begin."""

  def begun(configs):
    """The state with which the last run of a program begins."""
    runs = program.WholeRuns(configs)
    run = jax.tree.map(lambda x: x[-1], runs._runs)
    carry = runs._run.start(runs._shared.prompts, run)
    return carry, runs._run._frozen(runs._shared, run, carry)

  path = 'method.losses.AdaptiveKL.start'
  first, last = (
    make_config('adaptive_kl', seed, 'model.lora_rank=2', f'{path}={start}')
    for seed, start in ((0, 0.1), (1, 5.0))
  )
  together, alone = begun([first, last]), begun([last])
  (state,) = together[0].state.method_state.values()
  assert state['beta'] == 5.0
  jax.tree.map(np.testing.assert_array_equal, together, alone)


@pytest.mark.slow
@pytest.mark.devices
def test_runs_are_split_over_devices():
  """E2: eight devices, a run each, against one device after the other."""
  configs = [make_config('grpo', seed) for seed in range(8)]
  tokens, _ = whole(configs)
  some, _ = whole(configs[1:6])  # 5 and 8 have no divisor in common
  np.testing.assert_array_equal(tokens[1:6], some)


@pytest.mark.parametrize(
  'num_samples', [0, pytest.param(3, marks=pytest.mark.slow)]
)
def test_all_metrics_are_those_of_the_loop(tmp_path, num_samples):
  """E2 in tokens, names and values: five iterations, evaluations at 0, 2, 4.

  Evaluations are greedy, and of samples. Five Adam steps separate the last row
  from the first: a looser tolerance.
  """
  sets = ('evaluation.every=2', f'evaluation.num_samples={num_samples}')
  config = make_config('grpo', 0, *sets)
  loop.Trainer(config, str(tmp_path)).run()
  _, metrics = whole([config])
  assert_same_rows(metrics, read_jsonl(tmp_path / METRICS), every=2)


def assert_same_rows(metrics, expected, every):
  """Names and values, in order of steps."""
  found = program.rows(metrics, 0, every)
  assert [row['step'] for row in found] == list(range(ITERATIONS + 1))
  for old, new in zip(expected, found, strict=True):
    old, new = (
      {n: x for n, x in row.items() if not n.startswith('time/')}
      for row in (old, new)
    )
    assert old.keys() == new.keys()
    for name in old:
      np.testing.assert_allclose(
        new[name], old[name], rtol=1e-3, atol=1e-4, err_msg=name
      )


@pytest.mark.slow
@pytest.mark.parametrize(
  ('method', 'sets'),
  [
    (
      'nlpo',
      ('model.value_head=True', 'method.logits.LaggedSupport.period=2'),
    ),
    ('mopps', ('rollout.num_prompts=4',)),
    ('hapo', ()),  # a reference, and state by prompt
    # A state that every optimizer step moves, and a reference that follows.
    ('adaptive_kl', ('method.reference=Average(decay=0.5)',)),
    ('grpo', ('method.reference=RandomPast(iterations=1, most=2)',)),
    ('lambda_grpo', ('optimizer.learning_rate=0.001',)),  # a learned exponent
    (
      'kl_cov',
      (
        'method.group_filter=null',
        'update.minibatch_prompts=4',
        'update.epochs=2',
      ),
    ),
    ('ppo', ('model.value_head=True', 'update.microbatch_prompts=4')),
  ],
)
def test_stateful_methods_are_those_of_the_loop(tmp_path, method, sets):
  """Lagged copies, selectors, states of pieces, several steps a rollout; E2."""
  config = make_config(method, 2, *sets)
  tokens, metrics = whole([config])
  assert_same_run(config, tmp_path, tokens[0], program.rows(metrics, 0, 0))
