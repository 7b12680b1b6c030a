"""From a configuration to the parts of a run."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from configs import bandit
from rl_jax import setup, sharding
from rl_jax.overrides import override
from rl_jax.tasks import Bandit, QuestionAnswer


@pytest.fixture(scope='module')
def mesh():
  """One device."""
  return sharding.make_mesh(sharding.MeshConfig(), jax.devices()[:1])


@pytest.fixture
def config(toy):
  """GRPO on the bandit."""
  return bandit.get_config(toy.get_method('grpo'))


def load(config, mesh, /, **fields):
  """The policy of the configuration with other fields of its source."""
  source = dataclasses.replace(config.model, **fields)
  return setup.load_policy(source, config.task, config.seed, mesh)


@pytest.fixture(scope='module')
def policies(toy, mesh):
  """The bandit's policy: plain, and with adapters and a value head."""
  config = bandit.get_config(toy.get_method('grpo'))
  return load(config, mesh), load(config, mesh, lora_rank=2, value_head=True)


def test_the_vocabulary_is_that_of_the_task(policies):
  """8 contexts, 8 actions, padding and end."""
  plain, _ = policies
  assert plain.model.vocab_size == plain.tokenizer.vocab_size == 18
  assert plain.params['model']['embed'].shape[0] == 18
  assert set(plain.trainable) == {'model'} and not plain.frozen


def test_adapters_freeze_the_model(policies):
  """Adapters and value head are trained; the model is that without them."""
  plain, adapted = policies
  assert set(adapted.trainable) == {'lora', 'value_head'}
  assert set(adapted.frozen) == {'model'}
  assert set(adapted.params) == {'lora', 'value_head', 'model'}
  jax.tree.map(
    np.testing.assert_array_equal,
    adapted.params['model'],
    plain.params['model'],
  )


def test_the_reference_shares_no_donated_buffer(config, policies):
  """A buffer may be donated once: trainable parts are copied, frozen not."""
  for policy in policies:
    reference = setup.reference(config, policy)
    assert set(reference) == set(policy.params)
    for name in policy.trainable:
      for x, y in zip(
        jax.tree.leaves(reference[name]),
        jax.tree.leaves(policy.trainable[name]),
        strict=True,
      ):
        assert x.unsafe_buffer_pointer() != y.unsafe_buffer_pointer()
        np.testing.assert_array_equal(x, y)
    for name in policy.frozen:
      assert reference[name] is policy.frozen[name]


def test_no_reference_where_nothing_compares(toy, policies):
  """It would cost a forward pass and a copy of the weights."""
  config = bandit.get_config(toy.get_method('rloo'))
  assert setup.reference(config, policies[0]) is None


def test_a_source_must_be_named(config, mesh):
  """A path, or a configuration of a new model with a task's alphabet."""
  with pytest.raises(ValueError, match='model.path or model.config'):
    load(config, mesh, config=None)
  with pytest.raises(ValueError, match='QuestionAnswer has no alphabet'):
    setup.task_tokenizer(QuestionAnswer(sources={'train': 'x.jsonl'}))
  assert setup.task_tokenizer(Bandit()).vocab_size == 18


def test_a_wrong_mesh_is_refused_before_anything_else(config):
  """Both numbers are named."""
  config = override(config, 'mesh.tensor', '64')
  with pytest.raises(ValueError, match='needs 64 devices, but there are'):
    setup.prepare(config, None)


def test_a_workdir_belongs_to_one_configuration(config, tmp_path):
  """The difference is shown; more iterations only continue the run."""
  workdir = str(tmp_path / 'run')
  setup.check_workdir(config, workdir)
  setup.write_config(config, workdir)
  setup.check_workdir(config, workdir)
  setup.check_workdir(override(config, 'iterations', '99'), workdir)
  other = override(config, 'optimizer.learning_rate', '0.5')
  other = override(other, 'method.losses.PPOClip.clip_high', '0.28')
  with pytest.raises(ValueError) as error:
    setup.check_workdir(other, workdir)
  text = str(error.value)
  assert 'method.losses.0.clip_high: 0.2 -> 0.28' in text
  assert 'optimizer.learning_rate: 0.01 -> 0.5' in text
  assert 'experiment.json' in text


def test_a_run_may_move(config, tmp_path, caplog):
  """Mesh, microbatches, checkpoints, logs: each change is logged, none hidden.

  Fields with similar names that do decide numbers are still refused.
  """
  workdir = str(tmp_path / 'run')
  setup.write_config(config, workdir)
  free = {
    'mesh.tensor': '2',
    'update.microbatch_prompts': '4',
    'checkpoint.every': '3',
    'verifier.num_workers': '2',
    'model.remat': 'true',
  }
  moved = config
  for path, text in free.items():
    moved = override(moved, path, text)
  setup.check_workdir(moved, workdir)
  for path in free:
    assert f'continuing with another {path}: ' in caplog.text
  caplog.clear()
  setup.check_workdir(config, workdir)
  assert 'another' not in caplog.text
  for path, text in {
    'update.minibatch_prompts': '4',
    'verifier.timeout_seconds': '9.0',
    'evaluation.num_prompts': '9',
  }.items():
    with pytest.raises(ValueError, match=path):
      setup.check_workdir(override(moved, path, text), workdir)


def test_checkpoints_without_a_configuration_are_refused(config, tmp_path):
  """Files that were moved away in part must not be continued as another run."""
  step = tmp_path / 'checkpoints' / 'step_00000007'
  step.mkdir(parents=True)
  (step / 'COMMITTED').touch()
  with pytest.raises(ValueError, match='checkpoints but no experiment.json'):
    setup.check_workdir(config, str(tmp_path))


def test_the_first_configuration_stays(config, tmp_path):
  """A continued run does not rewrite what it began with."""
  workdir = str(tmp_path / 'run')
  setup.write_config(config, workdir)
  setup.write_config(override(config, 'iterations', '99'), workdir)
  saved = json.loads((tmp_path / 'run' / 'experiment.json').read_text())
  assert saved['iterations'] == 60


def test_a_refused_configuration_leaves_no_trace(config, tmp_path):
  """The corrected command must not meet the mistake's experiment.json."""
  workdir = str(tmp_path / 'run')
  bad = override(config, 'update.minibatch_prompts', '3')
  with pytest.raises(ValueError, match='must divide'):
    setup.prepare(bad, workdir)
  setup.prepare(config, workdir)
  assert not (tmp_path / 'run').exists()


def test_a_run_without_a_checkpoint_is_named(config, mesh, tmp_path):
  """evaluate cannot take it, and says so."""
  workdir = str(tmp_path / 'run')
  setup.write_config(config, workdir)
  with pytest.raises(ValueError, match='run holds no checkpoint yet'):
    setup.load_checkpoint(workdir, mesh)
