"""One iteration on 8 devices equals one on a single device."""

import dataclasses
import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.worlds import bandit
from experiments.flags import configuration
from rl_jax.learning import update
from rl_jax.learning.statistics import Forward, model_needs
from rl_jax.learning.update import UpdateConfig
from rl_jax.method import CREDIT_SLOTS
from rl_jax.models import presets
from rl_jax.models.source import ModelSource
from rl_jax.overrides import override
from rl_jax.records.checkpoints import checkpointer
from rl_jax.records.metrics import read_jsonl
from rl_jax.rollouts.collect import RolloutConfig
from rl_jax.rollouts.prompts import PromptSet
from rl_jax.runs import assembly, loop, stages
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.serialization import from_json
from rl_jax.types import LEARNED
from rl_jax.worlds import Arithmetic

pytestmark = [pytest.mark.devices, pytest.mark.usefixtures('no_mesh_left')]

ONE = (1, 1, 1)
MESHES = [(8, 1, 1), (1, 8, 1), (2, 2, 2)]
OTHER_MESHES = [
  shape
  for shape in itertools.product((1, 2, 4, 8), repeat=3)
  if math.prod(shape) == 8 and shape not in MESHES
]
# The last axis splits the four tokens of a response.
SEQUENCE_MESHES = [
  (1, 1, 1, 2),
  (1, 1, 1, 4),
  (2, 1, 1, 2),
  (1, 2, 1, 2),
  (1, 1, 2, 2),
  (1, 2, 2, 2),
]
MODEL = presets.small(
  num_layers=1, width=16, num_heads=4, head_size=8, mlp_size=32
)


def make_mesh(shape):
  """Axes data, fsdp, tensor, and perhaps sequence, over the first devices."""
  axes = dict(zip(('data', 'fsdp', 'tensor', 'sequence'), shape, strict=False))
  return mesh_lib.make_mesh(
    mesh_lib.MeshConfig(**axes), jax.devices()[: math.prod(shape)]
  )


def make_config(toy, name):
  """One-digit sums: 8 prompts x 4 samples of up to 4 tokens."""
  method = toy.get_method(name)
  if name == 'riskpo':  # bundles of 5 do not divide 8 prompts
    first, *others = method.credit
    method = method.replace(credit=(first.replace(bundle=4), *others))
  return dataclasses.replace(
    bandit.get_config(method),
    task=Arithmetic(digits=1),
    # As many outputs of the value head as a method reads at most.
    model=ModelSource(config=MODEL, value_head=True, num_values=3),
    update=UpdateConfig(epochs=2),  # the second step is off-policy
    rollout=RolloutConfig(
      num_prompts=8, group_size=4, max_prompt_tokens=4, max_response_tokens=4
    ),
  )


def make_stages(config, policy, mesh):
  """The jitted stages for a fresh state."""
  state = assembly.initial_state(config, policy, mesh)
  return stages.make_stages(config, policy.model, policy.tokenizer, mesh, state)


@functools.cache
def parts(toy, shape):
  """(mesh, policy, key, sampled trajectories) on a mesh."""
  config, mesh = make_config(toy, 'grpo'), make_mesh(shape)
  with jax.set_mesh(mesh):
    policy = policy_lib.load(config.model, config.task, 0, mesh)
    made = make_stages(config, policy, mesh)
    key = assembly.run_key(0, mesh)
    prompts = PromptSet(config.task, 'train', policy.tokenizer, 4)
    _, *arrays = prompts.batch(range(8))
    traj = made.engine.start(*arrays, 3, 0)
    traj = made.engine.generate(policy.params, traj=traj, key=key)
  return mesh, policy, key, traj


def nudged(params, scale):
  """Weights a little away from params, on their devices."""
  return jax.jit(
    lambda p: jax.tree.map(lambda x: x + scale * (jnp.sin(9 * x) + 0.02), p)
  )(params)


@functools.cache
def scored(toy, shape):
  """Trajectories with rewards and all that PPO scores, and the metrics."""
  config = make_config(toy, 'ppo')
  mesh, policy, _, traj = parts(toy, shape)
  with jax.set_mesh(mesh):
    made = make_stages(config, policy, mesh)
    method = assembly.method_on_mesh(config.method, mesh)
    policies = {'reference': nudged(policy.params, 0.1)}
    params = {**policy.params, 'policies': policies}
    traj, metrics = made.score(params, traj, method)
    reward = (np.asarray(traj.response_BT) % 3 == 0).mean(1, dtype=np.float32)
    reward = jax.device_put(reward, mesh_lib.replicated(mesh))
  # What tasks and environments say of a row, for the methods that ask.
  rng, extras = np.random.RandomState(0), {}
  for name, make in toy.EXTRAS.items():
    eight = np.asarray(make(rng, 8, 4), np.float32)
    extras[name] = np.tile(eight, (4,) + (1,) * (eight.ndim - 1))
  extras = jax.device_put(extras, mesh_lib.replicated(mesh))
  traj = traj.replace(
    reward_B=reward,
    rewards={name: reward for name in ('outcome', 'format', 'correct')},
    extras=extras,
  )
  return traj, jax.device_get(metrics)


@functools.cache
def iteration(toy, name, shape, microbatches=1):
  """Host copies: trajectories, gradient, loss and metrics of one minibatch."""
  config = make_config(toy, name)
  mesh, policy, key, _ = parts(toy, shape)
  traj, _ = scored(toy, shape)
  with jax.set_mesh(mesh):
    made = make_stages(config, policy, mesh)
    method = assembly.method_on_mesh(config.method, mesh)
    in_extras = model_needs(config.method) - {'logp', 'entropy', 'values'}
    if in_extras or 'entropy' in config.method.needs(CREDIT_SLOTS):
      # Of weights whose probabilities differ: how certain nearly uniform ones
      # are is a difference of rounding, which the group's scale would enlarge.
      sharper = nudged(policy.params, 1.0)
      traj, _ = made.score(sharper, traj, method)
    traj, _, _ = made.make_batch(method, traj, method.init_state(8))
    gradient = jax.jit(
      functools.partial(
        update.minibatch_gradient,
        Forward(model=policy.model, microbatches=microbatches),
        reuse_scores=False,
      )
    )
    batch = update.Batch(frozen={}, method=method, traj=traj, key=key)
    states = method.init_state(8)
    params = {**policy.params, LEARNED: method.init_params()}
    *found, _ = gradient(nudged(params, 0.2), batch, states)
    return jax.device_get((traj, *found))


SLOW = pytest.mark.slow
# One for every seam: what credit, losses, weights and aggregation may do.
REPRESENTATIVES = (
  'reinforce',
  'rloo',
  'dr_grpo',
  'dapo',
  'ppo',
  'clip_cov',
  'kl_cov',
)
ADVANTAGE_ALONE = ('rloo', 'dr_grpo')  # in the fast run GRPO stands for them
CASES = [
  *(
    # In the fast run the mesh of all axes stands for the others.
    pytest.param('grpo', shape, marks=SLOW if shape != (2, 2, 2) else ())
    for shape in MESHES
  ),
  *(
    pytest.param(name, (2, 2, 2), marks=SLOW if name in ADVANTAGE_ALONE else ())
    for name in REPRESENTATIVES
  ),
  *(pytest.param('grpo', shape, marks=SLOW) for shape in OTHER_MESHES),
  *(
    pytest.param(name, shape, marks=SLOW)
    for name in ('grpo', 'ppo')
    for shape in SEQUENCE_MESHES
  ),
  # A lagged copy, hidden states, statistics of groups, draws by token.
  *(
    pytest.param(name, (1, 2, 2, 2), marks=SLOW)
    for name in ('nlpo', 'rep_exp', 'tw_grpo', 'clip_cov')
  ),
  *(
    pytest.param(name, shape, marks=SLOW)
    for name in REPRESENTATIVES
    for shape in MESHES[:2]
  ),
  *(
    pytest.param(name, (2, 2, 2), marks=SLOW)
    for name in configuration.names('configs.methods')
    if name not in REPRESENTATIVES and name != 'grpo'
  ),
]


@pytest.mark.parametrize(('name', 'shape'), CASES)
def test_an_iteration_on_a_mesh(toy, tiny, name, shape):
  """E2 for tokens, E1 for advantages, loss and gradient."""
  traj, grads, loss, metrics = iteration(toy, name, shape)
  one, one_grads, one_loss, one_metrics = iteration(toy, name, ONE)
  np.testing.assert_array_equal(traj.response_BT, one.response_BT)
  np.testing.assert_array_equal(traj.length_B, one.length_B)
  assert scored(toy, shape)[1]['rollout/logp_gap_max'] < 1e-4
  np.testing.assert_allclose(
    traj.advantages_BT, one.advantages_BT, rtol=1e-5, atol=1e-5
  )
  assert np.abs(one.advantages_BT).max() > 0.1
  np.testing.assert_allclose(loss, one_loss, rtol=1e-5, atol=1e-6)
  assert tiny.relative_gap(grads, one_grads) < 1e-5
  assert metrics.keys() == one_metrics.keys()


@pytest.mark.parametrize(
  ('name', 'shape'),
  [
    # In one pass and in two; without fsdp and with it.
    ('grpo', (2, 2, 1)),
    ('clip_cov', (4, 1, 1)),
    # By group, and sorted over the batch.
    pytest.param('dpo', (2, 2, 1), marks=SLOW),
    pytest.param('aot', (4, 1, 1), marks=SLOW),
    pytest.param('kto', (2, 2, 1), marks=SLOW),
    pytest.param('ppo', (4, 1, 1), marks=SLOW),
    pytest.param('ppo', (2, 2, 1), marks=SLOW),
    pytest.param('clip_cov', (2, 2, 1), marks=SLOW),
    pytest.param('nlpo', (2, 2, 1), marks=SLOW),
    pytest.param('tw_grpo', (2, 2, 1), marks=SLOW),
    # Where heads are split too, copies exchange every microbatch.
    pytest.param('grpo', (2, 2, 2), marks=SLOW),
  ],
)
def test_microbatches_on_a_mesh(toy, tiny, name, shape):
  """E1: two of them, summed on every copy of the parameters by itself."""
  _, grads, loss, metrics = iteration(toy, name, shape, microbatches=2)
  _, one_grads, one_loss, one_metrics = iteration(toy, name, ONE)
  np.testing.assert_allclose(loss, one_loss, rtol=1e-5, atol=1e-6)
  assert tiny.relative_gap(grads, one_grads) < 1e-5
  assert metrics.keys() == one_metrics.keys()


@pytest.mark.parametrize(
  ('written', 'read'),
  [
    ((2, 2, 2), [ONE, (1, 8, 1)]),
    *(
      pytest.param(shape, [*MESHES, *OTHER_MESHES], marks=SLOW)
      for shape in (ONE, (1, 2, 4), (4, 2, 1))
    ),
    pytest.param((1, 1, 1, 2), [ONE], marks=SLOW),
    pytest.param(ONE, [(1, 1, 1, 2), (1, 2, 2, 2)], marks=SLOW),
  ],
)
def test_a_checkpoint_moves_between_meshes(toy, tmp_path, written, read):
  """E0: parameters, moments and counters, in the layout of the new mesh."""
  config = make_config(toy, 'ppo')

  def state_on(shape):
    mesh, policy, _, _ = parts(toy, shape)
    with jax.set_mesh(mesh):
      return assembly.initial_state(config, policy, mesh)

  state = state_on(written)
  with jax.set_mesh(make_mesh(written)):
    state = state.replace(
      params=jax.tree.map(lambda x: x + 1, state.params), step=state.step + 7
    )
  saver = checkpointer.Checkpointer(tmp_path)
  saver.save(7, {'state': state})
  saver.wait()
  for shape in read:
    fresh = state_on(shape)
    tree = checkpointer.abstract_tree({'state': fresh})
    restored = saver.restore(tree).tree['state']
    jax.tree.map(
      np.testing.assert_array_equal, *jax.device_get((restored, state))
    )
    for x, y in zip(
      jax.tree.leaves(restored.params),
      jax.tree.leaves(fresh.params),
      strict=True,
    ):
      assert x.sharding.is_equivalent_to(y.sharding, x.ndim)
  saver.close()


@pytest.mark.slow
def test_a_run_on_8_devices(toy, tmp_path, compiled):
  """Loop, minibatches, checkpoint and evaluation under the transfer guard.

  The layouts of the state survive an update: two programs of the update
  (with and without reused scores), and the workdir is read on one device.
  """
  config = make_config(toy, 'grpo')
  for path, text in {
    'iterations': '3',
    'mesh.data': '2',
    'mesh.fsdp': '2',
    'mesh.tensor': '2',
    'update.minibatch_prompts': '4',
    'evaluation.every': '3',
    'evaluation.num_prompts': '8',
  }.items():
    config = override(config, path, text)
  trainer = loop.Trainer(config, str(tmp_path))
  before = jax.tree.map(lambda x: x.sharding, trainer.state.params)
  programs = compiled.copy()
  row = trainer.run()
  after = jax.tree.map(lambda x: x.sharding, trainer.state.params)
  assert row['train/skipped'] == 0 and row['rollout/logp_gap_max'] < 1e-4
  same = jax.tree.map(
    lambda x, a, b: a.is_equivalent_to(b, x.ndim),
    trainer.state.params,
    before,
    after,
  )
  assert all(jax.tree.leaves(same))
  assert (compiled - programs)['update_minibatch'] == 2
  one = make_mesh(ONE)
  with jax.set_mesh(one):
    _, params, _ = policy_lib.load_checkpoint(str(tmp_path), one)
  jax.tree.map(
    np.testing.assert_array_equal,
    *jax.device_get(
      (params, {**trainer.parts.policy.frozen, **trainer.state.params})
    ),
  )


def test_a_run_takes_the_devices_that_share_its_batch(toy, tmp_path, caplog):
  """Six of eight for 6 prompts; said once, and recorded as no choice."""
  config = make_config(toy, 'grpo')
  for path, text in {
    'iterations': '1',
    'rollout.num_prompts': '6',
    'evaluation.every': '1',
    'verifier.num_workers': '0',
  }.items():
    config = override(config, path, text)
  trainer = loop.Trainer(config, str(tmp_path))
  assert dict(trainer.parts.mesh.shape)['data'] == 6
  assert 'mesh.data = 6 uses 6 of 8 devices' in caplog.text
  row = trainer.run()
  assert row['train/skipped'] == 0 and row['evaluation/n'] == 4
  saved = from_json((tmp_path / 'experiment.json').read_text())
  assert saved.mesh == mesh_lib.MeshConfig()


@pytest.mark.slow
@pytest.mark.parametrize(
  ('name', 'axis'),
  [('grpo', 'tensor'), ('grpo', 'sequence'), ('ppo', 'sequence')],
)
def test_a_run_moves_to_another_mesh(toy, tmp_path, caplog, name, axis):
  """E2, E1: two iterations on data = 8, two on fsdp = 2 and axis = 4.

  The second ones in smaller pieces. Tokens and rewards are those of four
  iterations on the first mesh.
  """
  config = make_config(toy, name)
  here = override(override(config, 'iterations', '4'), 'mesh.data', '8')
  there = override(override(here, 'mesh.data', '1'), 'mesh.fsdp', '2')
  there = override(there, f'mesh.{axis}', '4')
  there = override(there, 'update.microbatch_prompts', '2')
  loop.Trainer(here, str(tmp_path / 'whole')).run()
  loop.Trainer(override(here, 'iterations', '2'), str(tmp_path / 'moved')).run()
  loop.Trainer(there, str(tmp_path / 'moved')).run()
  assert 'another mesh.data: 8 -> 1' in caplog.text
  assert f'another mesh.{axis}: 1 -> 4' in caplog.text
  assert 'another update.microbatch_prompts: None -> 2' in caplog.text
  rows, rollouts = (
    [read_jsonl(tmp_path / run / name) for run in ('whole', 'moved')]
    for name in ('metrics.jsonl', 'rollouts.jsonl')
  )
  fields = [[line.pop('tokens', {}) for line in part] for part in rollouts]
  assert rollouts[0] == rollouts[1] and len(rollouts[0]) == 4 * 16
  for one, other in zip(*fields, strict=True):
    assert one.keys() == other.keys() and one.get('text') == other.get('text')
    for key in one.keys() - {'text'}:  # four digits, of which the last may move
      np.testing.assert_allclose(
        one[key], other[key], 1e-3, 1e-5, err_msg=key, strict=True
      )
  for one, other in zip(*rows, strict=True):
    assert one.keys() == other.keys()
    for name in one:
      if not name.startswith('time/'):
        np.testing.assert_allclose(
          one[name], other[name], 1e-5, 1e-5, err_msg=name
        )
