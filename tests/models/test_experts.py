"""Experts: by hand, both ways of computing them, and on several devices."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import models
from rl_jax.models import experts, layers
from rl_jax.models import params as params_lib
from rl_jax.runtime import layout
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform

CFG = models.ModelConfig(
  vocab_size=19,
  num_layers=1,
  width=8,
  num_heads=2,
  num_kv_heads=1,
  head_size=4,
  mlp_size=6,
  num_experts=4,
  experts_per_token=2,
  lora_rank=2,
)
CHOSEN = dataclasses.replace(CFG, expert_products='chosen')


def make_layer(cfg, seed=0):
  """Random weights and adapters of one layer."""
  shapes = jax.eval_shape(
    lambda: layers.stacked_layers(
      params_lib.init_params(cfg, jax.random.key(0)), cfg
    )
  )
  rng = np.random.default_rng(seed)
  return jax.tree.map(
    lambda x: jnp.asarray(0.4 * rng.normal(size=x.shape[1:]), x.dtype), shapes
  )


@jax.jit
def both(layer, h):
  """[2, ...]: by all and by chosen experts, and their gradients."""

  def one(cfg):
    def total(layer, h):
      y = experts.feed_forward(layer, cfg, h, jax.nn.silu)
      weight = jnp.cos(jnp.arange(y.size)).reshape(y.shape)
      return (y * weight).sum(), y

    gradient = jax.grad(total, argnums=(0, 1), has_aux=True)
    return gradient(layer, h)[::-1]

  return one(CFG), one(CHOSEN)


def test_by_hand():
  """Two of three experts, one hidden unit; log-odds give 1/2, 1/3, 1/6.

  h = (1, 2): gates 0.5 and 1/3 of experts 0 and 1, or 0.6 and 0.4 of sum 1.
  Expert e: up = e + 1 times the sum of h, gate 2 for all, down (1, -e).
  y = 0.5 * 2 * 3 * (1, 0) + 1/3 * 2 * 6 * (1, -1) = (7, -4), or
  0.6 * 6 * (1, 0) + 0.4 * 12 * (1, -1) = (8.4, -4.8).
  """
  router = np.log([[1 / 2, 1 / 3, 1 / 6], [1, 1, 1]]).astype(np.float32)
  up = np.arange(1.0, 4.0)[:, None, None] * np.ones((1, 2, 1))
  down = np.stack([[1.0, -e] for e in range(3)])[:, None]
  base = {
    'router': router,
    'w_gate': np.full((3, 2, 1), [[2.0], [0.0]], np.float32),
    'w_up': up.astype(np.float32),
    'w_down': down.astype(np.float32),
  }
  h = jnp.array([[1.0, 2.0]])
  layer = {'base': base, 'lora': {}}
  cfg = dataclasses.replace(
    CFG, width=2, mlp_size=1, num_experts=3, lora_rank=0
  )

  @jax.jit
  def compute(layer):
    """By way, and with normalised gates or without."""
    return [
      experts.feed_forward(
        layer,
        dataclasses.replace(
          cfg, expert_products=way, normalized_gates=normalized
        ),
        h,
        lambda x: x,
      )
      for way in (experts.ALL, experts.CHOSEN)
      for normalized in (False, True)
    ]

  expected = [[7, -4], [8.4, -4.8]] * 2
  np.testing.assert_allclose(
    np.concatenate(compute(layer)), expected, rtol=1e-6
  )


def assert_same(found, expected):
  """E1: differences below 1e-5 of the largest entry of each array."""
  for one, two in zip(
    jax.tree.leaves(found), jax.tree.leaves(expected), strict=True
  ):
    most = float(jnp.abs(two).max())
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-5 * most)


def test_chosen_experts_equal_all():
  """E1, values and every gradient, with adapters."""
  layer = make_layer(CFG)
  h = jnp.asarray(np.random.default_rng(1).normal(size=(3, 5, 8)), jnp.float32)
  by_all, by_chosen = both(layer, h)
  assert_same(by_chosen, by_all)
  assert float(jnp.abs(by_all[1][0]['base']['router']).max()) > 1e-2


def test_a_token_depends_on_no_other():
  """E1: others may be anything, all of them of one expert too."""
  layer = make_layer(CFG)
  rng = np.random.default_rng(1)
  h = jnp.asarray(rng.normal(size=(3, 5, 8)), jnp.float32)
  crowd = h.at[1:].set(h[0, 0])
  for (y, _), (alone, _) in zip(
    both(layer, h), both(layer, crowd), strict=True
  ):
    np.testing.assert_allclose(y[0], alone[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(alone[1, 0], alone[2, 4])


@pytest.mark.parametrize('bad', [0.0, np.nan])
def test_few_rows_compare_their_experts_in_pairs_on_gpu(bad):
  """E0: the experts of a sort with their gates, and the gradient of these.

  Two experts are equal for all tokens, and a token has the number `bad`.
  """
  rng = np.random.default_rng(3)
  router = rng.normal(size=(CFG.width, CFG.num_experts)).astype(np.float32)
  router[:, 2] = router[:, 0]
  x = rng.normal(size=(7, CFG.width)).astype(np.float32)
  x[1, 3] = bad
  on_gpu = dataclasses.replace(CFG, platform=Platform('cuda', (9, 0)))

  def gates(router, cfg):
    expert_Mk, gate_Mk = experts.route(cfg, jnp.asarray(x), router)
    weight_Mk = jnp.cos(jnp.arange(gate_Mk.size)).reshape(gate_Mk.shape)
    return (gate_Mk * weight_Mk).sum(), (expert_Mk, gate_Mk)

  gradient = jax.grad(gates, has_aux=True)
  found, wanted = gradient(router, on_gpu), gradient(router, CFG)
  jax.tree.map(np.testing.assert_array_equal, found, wanted)


def test_one_expert_is_a_dense_mlp():
  """E1: with one expert, which has gate 1."""
  cfg = dataclasses.replace(
    CFG, num_experts=1, experts_per_token=1, lora_rank=0
  )
  dense = dataclasses.replace(cfg, num_experts=0, experts_per_token=0)
  layer = make_layer(cfg)
  h = jnp.asarray(np.random.default_rng(1).normal(size=(5, 8)), jnp.float32)
  base = {name: layer['base'][name][0] for name in experts.WEIGHTS}

  @jax.jit
  def compute(layer, base, h):
    found = experts.feed_forward(layer, cfg, h, jax.nn.silu)
    return found, layers._mlp({'base': base, 'lora': {}}, dense, h)

  assert_same(*compute(layer, base, h))


@pytest.mark.devices
@pytest.mark.parametrize(
  ('way', 'axes', 'platform'),
  [
    (experts.CHOSEN, dict(fsdp=2, tensor=2), Platform()),
    (experts.CHOSEN, dict(fsdp=4), Platform()),
    (experts.CHOSEN, dict(fsdp=2, tensor=2), Platform('tpu')),
    (experts.CHOSEN, dict(fsdp=4), Platform('tpu')),
    pytest.param(
      experts.ALL,
      dict(fsdp=2, tensor=2),
      Platform(),
      marks=pytest.mark.slow,
    ),
  ],
)
def test_split_experts_equal_one_device(way, axes, platform):
  """E1: rows over data and fsdp, experts over tensor; values and gradients.

  Where heads are whole, every copy of the parameters has its own rows.
  Accelerators gather weights in the order of memory.
  """
  cfg = dataclasses.replace(CFG, expert_products=way, platform=platform)
  layer = make_layer(cfg)
  h = jnp.asarray(np.random.default_rng(1).normal(size=(8, 3, 8)), jnp.float32)
  expected, _ = both(layer, h)
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(data=2, **axes))

  def compute(layer, h):
    return experts.feed_forward(layer, cfg, h, jax.nn.silu)

  def total(layer, h):
    copies = layout.copies(layer, h.shape[0])
    assert (copies is None) == ('tensor' in axes)
    if copies is None:
      found = compute(layer, h)
    else:
      found = layout.by_copies(compute)(copies, h)
    weight = jnp.cos(jnp.arange(found.size)).reshape(found.shape)
    return (found * weight).sum(), found

  with jax.set_mesh(mesh):
    gradient = jax.jit(jax.grad(total, argnums=(0, 1), has_aux=True))
    found = gradient(layer, jax.device_put(h, mesh_lib.rows(mesh)))
  assert_same(found[::-1], expected)
