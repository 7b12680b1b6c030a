"""Meshes, rules, and errors before anything is compiled."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec
import numpy as np
import pytest

from rl_jax import models
from rl_jax.models import params as params_lib
from rl_jax.runtime import layout
from rl_jax.runtime import mesh as mesh_lib


def test_a_mesh_that_does_not_match_the_devices_is_an_error():
  """The error names both numbers."""
  cfg = mesh_lib.MeshConfig(data=2, fsdp=3, tensor=5)
  with pytest.raises(ValueError, match='needs 30 devices, but there are 1'):
    mesh_lib.make_mesh(cfg, jax.devices()[:1])


def test_devices_are_placed_by_their_topology(monkeypatch):
  """By JAX, which knows it on TPUs; elsewhere they keep their order."""
  asked = []

  def create(shape, devices, **how):
    asked.append((shape, how))
    return np.asarray(devices).reshape(shape)

  monkeypatch.setattr(mesh_lib.mesh_utils, 'create_device_mesh', create)
  mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  assert asked == [((1, 1, 1, 1), {'allow_split_physical_axes': True})]


def test_constrain_is_the_identity_without_a_mesh():
  """E0: model code runs unchanged without a mesh."""
  x = jnp.ones((2, 3))
  assert layout.constrain(x, 'rows', None) is x


def test_every_logical_axis_of_the_model_has_a_rule():
  """A misspelt axis fails here."""
  leaves = jax.tree.leaves(
    models.specs(models.presets.PRESETS['Qwen2.5-7B']), is_leaf=models.is_spec
  )
  used = {axis for spec in leaves for axis in spec.logical_axes} - {None}
  assert used <= set(mesh_lib.RULES)


@pytest.mark.devices
def test_parameters_are_created_on_their_devices():
  """fsdp and tensor split a matrix; odd sizes stay whole; values equal."""
  cfg = models.presets.tiny(vocab_size=19)
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(data=2, fsdp=2, tensor=2))
  params = params_lib.init_params(cfg, jax.random.key(0), mesh)

  def spec(x):
    return x.sharding.spec

  layers = params['model']['layers']
  assert spec(layers['w_gate']) == PartitionSpec(None, 'fsdp', 'tensor')
  assert spec(layers['wo']) == PartitionSpec(None, 'tensor', None, 'fsdp')
  assert spec(params['model']['embed']) == PartitionSpec(None, 'fsdp')
  assert layers['w_gate'].addressable_shards[0].data.shape == (4, 64, 256)
  alone = params_lib.init_params(cfg, jax.random.key(0))
  jax.tree.map(
    lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6), params, alone
  )


def test_parts_are_those_of_the_mesh_in_force():
  """Axes that do not divide are left out; no mesh, one part."""
  assert layout.parts(32, 'rows') == 1
  mesh = mesh_lib.abstract_mesh(mesh_lib.MeshConfig(data=2, fsdp=4, tensor=2))
  with jax.sharding.use_abstract_mesh(mesh):
    assert layout.parts(32, 'rows') == 8
    assert layout.parts(12, 'rows') == 2
    assert layout.parts(13, 'rows') == 1
    assert layout.parts(10, 'vocab') == 2
    assert layout.parts(10, 'head_size') == 1


@pytest.mark.devices
def test_results_inside_shard_map_are_not_constrained():
  """JAX adds constraints where an axis is left, which takes compile time."""

  def run(x):
    return layout.by_rows(lambda x: jnp.sin(x) + 1, (True,), 8)(x)

  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(data=8))
  with jax.set_mesh(mesh):
    lowered = jax.jit(run).lower(jnp.ones((8, 4))).as_text()
  assert 'manual_computation' in lowered
  assert 'sharding_constraint' not in lowered
