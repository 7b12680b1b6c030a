"""Runs with parts of their own state: two halves equal the whole."""

import dataclasses

import jax
import numpy as np
import pytest

from rl_jax.models import packing
from rl_jax.overrides import override
from rl_jax.pieces import losses
from rl_jax.pieces.policies import Average, RandomPast
from rl_jax.records.metrics import read_jsonl
from rl_jax.runs import loop
from rl_jax.worlds import Arithmetic

pytestmark = pytest.mark.usefixtures('no_mesh_left')

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


@pytest.mark.slow
def test_a_critic_of_its_own_resumes_exactly(make_config, toy, tmp_path):
  """E0: PPO whose critic has its own layers and rate; 2 + 1 are 3."""
  config = make_config(
    toy.get_method('ppo'),
    iterations='3',
    model__value_head='true',
    model__critic='own',
    optimizer__critic_multiplier='4.0',
  )
  whole = loop.Trainer(config, str(tmp_path / 'whole'))
  before = jax.device_get(whole.state.params['critic'])
  whole.run()
  moved = jax.tree.map(
    lambda x, y: np.abs(x - y).max(), before, whole.state.params['critic']
  )
  assert min(jax.tree.leaves(moved)) > 0
  parts = str(tmp_path / 'parts')
  loop.Trainer(override(config, 'iterations', '2'), parts).run()
  resumed = loop.Trainer(config, parts)
  resumed.run()
  jax.tree.map(np.testing.assert_array_equal, resumed.state, whole.state)


@pytest.mark.slow
def test_early_stopping_is_exact(stripped, config, tmp_path):
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


@pytest.mark.slow
def test_a_lagged_copy_is_renewed_and_restored(make_config, toy, tmp_path):
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

  def same(a, b):
    return jax.tree.map(np.testing.assert_array_equal, a, b)

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
def test_stale_rollouts(make_config, stripped, toy, tmp_path):
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

  def same(a, b):
    return jax.tree.map(np.testing.assert_array_equal, a, b)

  same(resumed.state, whole.state)
  same(resumed.lagged.history, whole.lagged.history)
  assert [step for _, step in resumed.lagged.history] == [1, 2, 3]


@pytest.mark.slow
def test_a_rollout_in_parts(make_config, stripped, toy, tmp_path):
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
def test_packed_runs(make_config, stripped, toy, tmp_path, monkeypatch):
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


@pytest.mark.slow
def test_a_random_past_is_restored(make_config, toy, tmp_path):
  """E0: 3 + 3 iterations equal 6, the draws of later rounds included."""
  method = toy.get_method('grpo').replace(
    reference=RandomPast(iterations=1, most=2)
  )
  config = make_config(method, iterations='6')
  whole = loop.Trainer(config, str(tmp_path / 'whole'))
  whole.run()
  parts = str(tmp_path / 'parts')
  loop.Trainer(override(config, 'iterations', '3'), parts).run()
  resumed = loop.Trainer(config, parts)
  kept = resumed.parts.policies.trees['reference']
  assert int(kept['rounds']) == 3
  resumed.run()

  def same(a, b):
    return jax.tree.map(np.testing.assert_array_equal, a, b)

  same(resumed.state, whole.state)
  same(resumed.parts.policies.trees, whole.parts.policies.trees)
  assert 'reference' in whole.parts.policies.arrays()


@pytest.mark.slow
def test_what_pieces_keep_and_learn_is_restored(make_config, toy, tmp_path):
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

  def same(a, b):
    return jax.tree.map(np.testing.assert_array_equal, a, b)

  same(resumed.state, whole.state)
  same(resumed.parts.policies.trees, whole.parts.policies.trees)
  beta = whole.state.method_state['losses.1.AdaptiveKL']['beta']
  learned = whole.state.params['pieces']['losses.0.LengthPreference']
  assert beta != adaptive.start and learned['exponent'] != 0
  rows = read_jsonl(tmp_path / 'whole' / 'metrics.jsonl')
  # The reference follows: by half of every step, so the divergence stays.
  assert 0 < rows[-1]['policy/kl_ref'] < 1
