"""A policy comes from saved adapters or weights that can be trained."""

import dataclasses

import jax
import numpy as np
import pytest

from experiments.flags import configuration
from rl_jax.config import EvaluationConfig
from rl_jax.learning import master_weights
from rl_jax.learning.optimizers import OptimizerConfig
from rl_jax.models import ModelConfig
from rl_jax.models import params as params_lib
from rl_jax.models.files import model_dir
from rl_jax.models.source import ModelSource
from rl_jax.records.checkpoints.checkpointer import CheckpointConfig
from rl_jax.runs import policy as policy_lib
from rl_jax.runs.loop import Trainer
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform
from rl_jax.worlds import Bandit

TOKENIZER = policy_lib.task_tokenizer(Bandit())
MODEL = ModelConfig(
  vocab_size=TOKENIZER.vocab_size,
  num_layers=1,
  width=16,
  num_heads=2,
  num_kv_heads=2,
  head_size=8,
  mlp_size=16,
)
ADAPTED = dataclasses.replace(
  MODEL, lora_rank=4, lora_alpha=8.0, lora_targets=('wq', 'w_down')
)
SAME = dict(lora_rank=4, lora_alpha=8.0, lora_targets=('w_down', 'wq'))


@pytest.fixture(scope='module')
def mesh():
  """One device."""
  return mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])


@pytest.fixture(scope='module')
def adapted(tmp_path_factory):
  """(directory, parameters) of a model with trained adapters."""
  path = str(tmp_path_factory.mktemp('models') / 'adapted')
  params = params_lib.init_params(ADAPTED, jax.random.key(0))
  params['lora'] = jax.tree.map(lambda x: x + 0.1, params['lora'])
  model_dir.save_model(path, ADAPTED, params, TOKENIZER)
  return path, params


def load(mesh, **source):
  """The policy of a source."""
  return policy_lib.load(ModelSource(**source), Bandit(), 0, mesh)


def test_saved_adapters_are_continued_as_they_are(mesh, adapted):
  """E0: with the same rank, alpha and targets, in any order."""
  path, params = adapted
  policy = load(mesh, path=path, **SAME)
  assert policy.model.lora_alpha == 8.0
  assert set(policy.trainable) == {'lora'}
  jax.tree.map(np.testing.assert_array_equal, policy.params, params)


@pytest.mark.parametrize(
  'change, named',
  [
    (dict(lora_rank=0), r'lora_rank=4.*the run has model.lora_rank=0'),
    (dict(lora_rank=8), r'lora_rank=4.*the run has model.lora_rank=8'),
    (dict(lora_alpha=16.0), r'lora_alpha=8.0.*has model.lora_alpha=16.0'),
    (dict(lora_targets=('wq',)), r"lora_targets=\('wq', 'w_down'\).*\('wq',\)"),
  ],
)
def test_saved_adapters_are_never_dropped_or_rescaled(
  change, named, mesh, adapted
):
  """By the run and by its plan, which reads no weights."""
  source = ModelSource(path=adapted[0], **{**SAME, **change})
  with pytest.raises(ValueError, match=named + '.*export_weights'):
    policy_lib.load(source, Bandit(), 0, mesh)
  with pytest.raises(ValueError, match=named):
    policy_lib.planned_model(source, Bandit(), Platform())


def test_alpha_and_targets_are_configuration(mesh):
  """Any model has them, also one that is planned for."""
  policy = load(mesh, config=MODEL, **SAME)
  assert policy.model == dataclasses.replace(
    ADAPTED,
    lora_targets=SAME['lora_targets'],
    attention=policy.model.attention,
    compute_dtype=policy.model.compute_dtype,
  )
  assert set(policy.trainable['lora']['layers']) == {'wq', 'w_down'}
  with pytest.raises(ValueError, match="'embed'.*none of wq, wk"):
    ModelSource(lora_targets=('embed',))
  with pytest.raises(ValueError, match='lora_targets.*nothing'):
    ModelSource(lora_targets=())
  with pytest.raises(ValueError, match='lora_alpha = 0.0'):
    ModelSource(lora_alpha=0.0)
  with pytest.raises(ValueError, match='lora_rank = 4.*set ModelSource.lora_r'):
    ModelSource(config=ADAPTED)


@pytest.fixture(scope='module')
def halves(tmp_path_factory):
  """A model directory whose weights are bfloat16."""
  path = str(tmp_path_factory.mktemp('models') / 'halves')
  model = dataclasses.replace(MODEL, param_dtype='bfloat16')
  params = params_lib.init_params(model, jax.random.key(0))
  model_dir.save_model(path, model, params, TOKENIZER)
  return path


def dtypes(tree):
  """The types of all leaves."""
  return {str(x.dtype) for x in jax.tree.leaves(tree)}


@pytest.mark.parametrize(
  'dtype', ['float32', pytest.param('bfloat16', marks=pytest.mark.slow)]
)
def test_weights_of_bfloat16_files_change_at_a_small_rate(
  mesh, halves, dtype, tmp_path
):
  """50 steps at 1e-6: by rounding itself 99.8% of the weights would stay."""
  source = ModelSource(path=halves, compute_dtype='bfloat16', param_dtype=dtype)
  config = dataclasses.replace(
    configuration.supervised(configuration.build('bandit'), 8),
    iterations=50,
    model=source,
    optimizer=OptimizerConfig(learning_rate=1e-6),
    evaluation=EvaluationConfig(),
    checkpoint=CheckpointConfig(every=50),
    mesh=mesh_lib.MeshConfig(data=1),
  )
  with jax.set_mesh(mesh):
    trainer = Trainer(config, str(tmp_path))
    assert dtypes(trainer.state.params) == {dtype}
    before = jax.tree.map(np.asarray, trainer.state.params)
    trainer.run()
  after = trainer.state.params
  if dtype == 'bfloat16':
    remainders = trainer.state.opt_state.remainder
    after = jax.tree.map(master_weights.joined, after, remainders)
  # The rows of tokens that do not occur have no gradient, but for the softmax.
  changed = jax.tree.map(lambda x, y: np.mean(x != y), before, after)
  assert min(jax.tree.leaves(changed)) > 0.9


def test_weights_that_would_not_train_are_refused(mesh, halves):
  """At once, with what to set; a frozen base may be bfloat16."""
  with pytest.raises(ValueError, match="param_dtype = 'float32'.*lora_rank"):
    ModelSource(path=halves, param_dtype='float16')
  policy = load(mesh, path=halves, param_dtype='bfloat16', lora_rank=2)
  assert dtypes(policy.frozen) == {'bfloat16'}
  assert dtypes(policy.trainable) == {'float32'}
  narrow = jax.tree.map(lambda x: x.astype('float16'), policy.frozen)
  with pytest.raises(ValueError, match='float16 cannot be trained'):
    params_lib.split_trainable(MODEL, narrow)


def test_saved_outputs_of_a_value_head_are_kept():
  """Another number of them is refused before weights are read."""
  saved = dataclasses.replace(MODEL, value_head=True, num_values=2)
  source = ModelSource(path='x', value_head=True, num_values=2)
  assert source.applied_to(saved, saved).num_values == 2
  source = dataclasses.replace(source, num_values=1)
  with pytest.raises(ValueError, match='set model.num_values=2, not 1'):
    source.applied_to(saved, saved)


def test_a_critic_of_its_own_starts_from_files(mesh, tmp_path):
  """It is a copy of the policy; value_from brings the layers of its head."""
  path, other = str(tmp_path / 'model'), str(tmp_path / 'reward')
  params = params_lib.init_params(MODEL, jax.random.key(0))
  model_dir.save_model(path, MODEL, params, TOKENIZER)
  found = load(mesh, path=path, value_head=True, critic='own').trainable
  jax.tree.map(np.testing.assert_array_equal, found['critic'], params['model'])
  cfg = dataclasses.replace(MODEL, value_head=True)
  reward = params_lib.init_params(cfg, jax.random.key(1))
  model_dir.save_model(other, cfg, reward, TOKENIZER)
  source = dict(path=path, value_head=True, value_from=other)
  found = load(mesh, **source, critic='own').trainable
  jax.tree.map(np.testing.assert_array_equal, found['critic'], reward['model'])
  jax.tree.map(np.testing.assert_array_equal, found['model'], params['model'])
  wide = dataclasses.replace(cfg, num_layers=2)
  reward = params_lib.init_params(wide, jax.random.key(1))
  model_dir.save_model(other, wide, reward, TOKENIZER)
  with pytest.raises(ValueError, match='has layers of shape'):
    load(mesh, **source, critic='own')
  load(mesh, **source)  # only its head fits
