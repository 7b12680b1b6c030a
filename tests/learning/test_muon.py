"""Muon on the matrices of a model, which are stacked."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rl_jax.learning import optimizers
from rl_jax.learning.optimizers import OptimizerConfig, make_optimizer
from rl_jax.models import params as params_lib

ADAM = {'embed', 'final_norm', 'attn_norm', 'mlp_norm', 'value_head', 'router'}


@pytest.fixture(scope='module')
def models(tiny):
  """Trainable weights by kind: whole, with adapters, with experts."""
  kinds = {
    'whole': {'num_layers': 3, 'tied_embeddings': True},
    'lora': {'lora_rank': 2},
    'experts': {'num_experts': 2, 'experts_per_token': 1},
  }
  found = {}
  for kind, fields in kinds.items():
    cfg = dataclasses.replace(tiny.CFG, **fields)
    params = params_lib.init_params(cfg, jax.random.key(0))
    found[kind] = params_lib.split_trainable(cfg, params)[0]
  return found


def axes_of(params):
  """The matrices that optimizers.muon_matrices finds, by dotted path."""

  def whole(x):
    return x is None or hasattr(x, 'reduction_axis')

  flat, _ = jax.tree.flatten_with_path(
    optimizers.muon_matrices(params), is_leaf=whole
  )
  dotted = functools.partial(jax.tree_util.keystr, simple=True, separator='.')
  return {dotted(path): x for path, x in flat}


def test_axes_of_every_kind_of_weight(models):
  """Inputs and outputs; layers and experts are stacks, heads are outputs."""

  def take(kind, name):
    return tuple(axes_of(models[kind])[name])

  layers = 'model.layers'
  assert take('whole', f'{layers}.wq') == ((1,), (2, 3))
  assert take('whole', f'{layers}.wo') == ((1, 2), (3,))
  assert take('whole', f'{layers}.w_down') == ((1,), (2,))
  assert take('experts', f'{layers}.w_up') == ((2,), (3,))
  assert take('lora', 'lora.layers.wo.a') == ((1, 2), (3,))
  assert take('lora', 'lora.layers.wq.b') == ((1,), (2, 3))
  for params in models.values():
    for name, axes in axes_of(params).items():
      assert (axes is None) == bool(ADAM & set(name.split('.'))), name


def test_a_step_is_a_rotation_of_each_layer(models):
  """Singular values of about 1 for every layer; norms take steps of Adam.

  Five iterations leave them between 0.6 and 1.3 (Jordan et al. 2024).
  """
  params = models['whole']
  rng = np.random.default_rng(0)
  grads = jax.tree.map(
    lambda p: jnp.asarray(rng.normal(size=p.shape), jnp.float32), params
  )
  optimizer = make_optimizer(
    OptimizerConfig(name='contrib.muon', learning_rate=1.0, clip_norm=None)
  )
  updates, _ = jax.jit(optimizer.update)(grads, optimizer.init(params), params)
  found = updates['model']['layers']
  wide = found['wq'].reshape(3, 16, 16)
  values = np.linalg.svd(np.asarray(wide), compute_uv=False)
  assert 0.5 < values.min() and values.max() < 1.4
  # The first step of Adam with Nesterov's momentum has one size.
  size = np.abs(found['attn_norm'])
  np.testing.assert_allclose(size, size.mean(), rtol=1e-3)
  assert np.isfinite(optax.tree.norm(updates))
