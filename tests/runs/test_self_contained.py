"""A work directory is read without the model that the run began with."""

import os

import jax
import numpy as np
import pytest

from configs.worlds import bandit
from rl_jax.models.files import model_dir
from rl_jax.overrides import override
from rl_jax.runs import loop
from rl_jax.runs import policy as policy_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform


@pytest.fixture(scope='module')
def mesh():
  """One device."""
  return mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])


@pytest.fixture(scope='module')
def trained(toy, mesh, tmp_path_factory):
  """rank -> (folder, trained parameters); the base model is in folder/base."""

  def train(rank):
    folder = tmp_path_factory.mktemp('trained')
    config = bandit.get_config(toy.get_method('reinforce'))
    base = policy_lib.load(config.model, config.task, 5, mesh)
    path = str(folder / 'base')
    model_dir.save_model(path, base.model, base.params, base.tokenizer)
    changes = {
      'model.path': path,
      'model.config': 'null',
      'model.lora_rank': str(rank),
      'evaluation.every': '0',
      'iterations': '1',
    }
    for field, text in changes.items():
      config = override(config, field, text)
    trainer = loop.Trainer(config, str(folder / 'run'))
    trainer.run()
    params = {**trainer.parts.policy.frozen, **trainer.state.params}
    return folder, jax.device_get(params)

  return train


def test_all_weights_are_in_the_checkpoint(trained, mesh):
  """The base moved: model, tokenizer and weights come from the run."""
  folder, params = trained(0)
  _, _, tokenizer = model_dir.load_model(str(folder / 'base'))
  os.rename(folder / 'base', folder / 'moved')
  model, found, again = policy_lib.load_checkpoint(str(folder / 'run'), mesh)
  assert again == tokenizer
  jax.tree.map(np.testing.assert_array_equal, jax.device_get(found), params)
  source = policy_lib.ModelSource(path=str(folder / 'run'))
  assert policy_lib.planned_model(source, None, Platform()) == model


@pytest.mark.slow
def test_adapters_need_their_base(trained, mesh):
  """And say which; another one in its place is refused."""
  folder, params = trained(2)
  run = str(folder / 'run')
  _, found, _ = policy_lib.load_checkpoint(run, mesh)
  jax.tree.map(np.testing.assert_array_equal, jax.device_get(found), params)
  (weights,) = (folder / 'base').glob('*.safetensors')
  weights.write_bytes(weights.read_bytes()[:-1] + b'?')
  with pytest.raises(ValueError, match='adapters of a model that has changed'):
    policy_lib.load_checkpoint(run, mesh)
  os.rename(folder / 'base', folder / 'moved')
  with pytest.raises(ValueError, match='only adapters: .*base, which does not'):
    policy_lib.load_checkpoint(run, mesh)
