"""Adapters: unmerged, zero at the start, trained only."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import models
from rl_jax.models import lora, presets
from rl_jax.models import params as params_lib

BASE = presets.small(
  vocab_size=11, width=16, num_heads=4, head_size=4, mlp_size=24
)
CFG = dataclasses.replace(BASE, lora_rank=3, lora_alpha=6.0)
BATCH = (
  np.array([[1, 2, 3]], np.int32),
  np.array([[0, 1, 1]], np.float32),
  np.array([[4, 5], [6, 7]], np.int32),
  np.ones((2, 2), np.float32),
)
FORWARD = jax.jit(models.forward, static_argnums=1)


def trained_params():
  """Adapters whose b is no longer 0."""
  params = params_lib.init_params(CFG, jax.random.key(0))
  return params | {'lora': jax.tree.map(lambda x: x + 0.1, params['lora'])}


def test_a_fresh_adapter_changes_nothing():
  """E0: b starts at 0, so x a b is exactly 0."""
  params = params_lib.init_params(CFG, jax.random.key(0))
  without = {'model': params['model']}
  np.testing.assert_array_equal(
    FORWARD(params, CFG, *BATCH), FORWARD(without, BASE, *BATCH)
  )


def test_merged_weights_give_the_same_states():
  """E1: x W + (x a) b * (alpha / rank) = x (W + a b * (alpha / rank))."""
  params = trained_params()
  merged = models.merge(params, CFG)
  assert 'lora' not in merged
  expected = FORWARD(merged, BASE, *BATCH)
  np.testing.assert_allclose(
    FORWARD(params, CFG, *BATCH), expected, rtol=1e-4, atol=1e-5
  )
  assert (
    float(
      jnp.abs(
        expected - FORWARD({'model': params['model']}, BASE, *BATCH)
      ).max()
    )
    > 0.1
  )


def test_the_update_by_hand():
  """a = [1, 2], b = [3, 4], scale 0.5: [[1.5, 2], [3, 4]]."""
  a = jnp.array([[[1.0], [2.0]]])
  b = jnp.array([[[3.0, 4.0]]])
  np.testing.assert_array_equal(
    lora.delta(a, b, 0.5, 1), [[[1.5, 2.0], [3.0, 4.0]]]
  )


def test_only_the_targets_get_adapters_and_all_of_them_learn():
  """Gradients over only the second tree reach every adapter."""
  cfg = dataclasses.replace(CFG, lora_targets=('wq', 'wo', 'w_down'))
  assert set(models.specs(cfg)['lora']['layers']) == {'wq', 'wo', 'w_down'}
  params = trained_params()

  def loss(adapters):
    hidden = models.forward(params | {'lora': adapters}, CFG, *BATCH)
    return jnp.sin(hidden).sum()

  gradients = jax.jit(jax.grad(loss))(params['lora'])
  assert set(gradients['layers']) == set(lora.TARGETS)
  for leaf in jax.tree.leaves(gradients):
    assert float(jnp.abs(leaf).min(axis=0).max()) > 0


def test_names_of_files_lead_to_targets():
  """PEFT and Hugging Face have other names for the same matrices."""
  with pytest.raises(ValueError, match='Did you mean wk, wq.$'):
    lora.check_targets('ModelSource', ('q_proj', 'k_proj', 'wv'))
  with pytest.raises(ValueError, match="'wx'. is none of wq, .*w_down$"):
    lora.check_targets('ModelSource', ('wx',))
