"""The model on 8 devices equals the model on one."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import decoding, models
from rl_jax.models import params as params_lib
from rl_jax.runtime import mesh as mesh_lib
from rl_jax.runtime.platform import Platform

pytestmark = pytest.mark.devices

MESHES = [(8, 1, 1), (1, 8, 1), (2, 2, 2)]
CFG = models.ModelConfig(
  vocab_size=13,
  num_layers=2,
  width=32,
  num_heads=4,
  num_kv_heads=2,
  head_size=8,
  mlp_size=48,
  qkv_bias=True,
  lora_rank=2,
)
# A tensor axis of two devices splits them; other axes have all.
EXPERTS = dataclasses.replace(
  CFG, num_experts=4, experts_per_token=2, expert_products='chosen'
)
N, G, P, T = 8, 2, 5, 6
SAMPLING = decoding.SamplingConfig(eos_ids=(2,))


def compute(cfg, params, traj):
  """Rollout, then hidden states and gradients of a log-prob."""
  out = decoding.generate(
    params, cfg, traj, jax.random.key(1), SAMPLING, max_new_tokens=T
  )

  def loss(params):
    hidden = models.forward(
      params,
      cfg,
      out.prompt_NP,
      out.prompt_mask_NP,
      out.response_BT,
      out.mask_BT,
    )
    logp = jax.nn.log_softmax(models.logits(params, cfg, hidden))
    logp = jnp.take_along_axis(logp, out.response_BT[..., None], -1)[..., 0]
    return (logp * out.mask_BT).mean(), hidden

  gradients, hidden = jax.grad(loss, has_aux=True)(params)
  return out, hidden, gradients


def make_inputs(mesh, cfg=CFG):
  key = jax.random.key(0)
  params = params_lib.init_params(cfg, key, mesh)
  # Adapters that are not zero, and distributions that are not uniform.
  params['lora'] = jax.tree.map(
    lambda x: x + 0.1 * jnp.sin(jnp.arange(x.size)).reshape(x.shape),
    params['lora'],
  )
  params['model']['embed'] *= 5
  prompt_NP = np.random.default_rng(0).integers(3, 13, (N, P))
  mask_NP = np.ones((N, P))
  mask_NP[3, :3] = 0
  traj = decoding.start_trajectories(
    prompt_NP, mask_NP, np.arange(N), group_size=G, max_response_tokens=T
  )
  if mesh is not None:
    traj = jax.device_put(traj, mesh_lib.rows(mesh))
  return params, traj


@functools.cache
def on_one_device(cfg=CFG):
  return jax.jit(compute, static_argnums=0)(cfg, *make_inputs(None, cfg))


@pytest.mark.slow  # test_mesh_equality.py has it as a part of iterations
@pytest.mark.parametrize(
  ('shape', 'cfg'), [*((s, CFG) for s in MESHES), ((2, 2, 2), EXPERTS)]
)
def test_rollout_states_and_gradients_on_a_mesh(shape, cfg):
  """E2 for tokens, E1 for hidden states and gradients."""
  mesh = mesh_lib.make_mesh(
    mesh_lib.MeshConfig(data=shape[0], fsdp=shape[1], tensor=shape[2])
  )
  with jax.set_mesh(mesh):
    program = jax.jit(compute, static_argnums=0)
    out, hidden, gradients = program(cfg, *make_inputs(mesh, cfg))
  one_out, one_hidden, one_gradients = on_one_device(cfg)
  np.testing.assert_array_equal(out.response_BT, one_out.response_BT)
  np.testing.assert_array_equal(out.length_B, one_out.length_B)
  np.testing.assert_allclose(
    out.logp_behaviour_BT, one_out.logp_behaviour_BT, atol=1e-5
  )
  np.testing.assert_allclose(hidden, one_hidden, atol=3e-5)
  for (path, x), y in zip(
    jax.tree_util.tree_leaves_with_path(gradients),
    jax.tree.leaves(one_gradients),
    strict=True,
  ):
    gap, scale = float(jnp.abs(x - y).max()), float(jnp.abs(y).max())
    assert gap <= 1e-5 * max(scale, 1e-3), (path, gap, scale)
  rows = hidden.sharding.shard_shape(hidden.shape)[0]
  assert rows == N * G // (shape[0] * shape[1])


def sampled(params, traj, sampling=SAMPLING):
  """The responses of one jitted rollout."""
  generate = jax.jit(
    decoding.generate, static_argnames=('cfg', 'max_new_tokens')
  )
  out = generate(
    params, CFG, traj, jax.random.key(1), sampling, max_new_tokens=T
  )
  return out.response_BT


@pytest.mark.parametrize('cfg', [CFG, EXPERTS])
@pytest.mark.parametrize(
  'platform', [Platform('cuda', (9, 0)), Platform('tpu')]
)
@pytest.mark.parametrize('shape', [(1, 8, 1), (2, 2, 2), (1, 4, 2)])
def test_weights_of_decoding_are_whole_over_fsdp(shape, platform, cfg):
  """E0: cut into layers and gathered, in the form of either accelerator."""
  cfg = dataclasses.replace(cfg, platform=platform)

  @functools.partial(jax.jit, static_argnums=0)
  def weights(cfg, params):
    return decoding.prepare_weights(params, cfg)

  mesh = mesh_lib.make_mesh(
    mesh_lib.MeshConfig(data=shape[0], fsdp=shape[1], tensor=shape[2])
  )
  with jax.set_mesh(mesh):
    found = weights(cfg, make_inputs(mesh, cfg)[0])
  wanted = weights(cfg, make_inputs(None, cfg)[0])
  jax.tree.map(np.testing.assert_array_equal, found, wanted)
  for x in jax.tree.leaves(found):
    shard = x.sharding.shard_shape(x.shape)
    parts = int(np.prod(x.shape)) // int(np.prod(shard))
    assert parts in (1, shape[2]), x.sharding


def test_without_an_end_token():
  """E2. An empty constant in a shard_map aborts the compiler of jax 0.11.2."""
  endless = decoding.SamplingConfig()
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(data=8))
  with jax.set_mesh(mesh):
    found = sampled(*make_inputs(mesh), endless)
  np.testing.assert_array_equal(found, sampled(*make_inputs(None), endless))


def test_groups_that_do_not_divide_still_work():
  """3 groups on 8 devices: not split, same tokens."""
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(data=8))
  params, traj = make_inputs(None)

  def rows(x):
    return x[: 3 * G] if x.shape[0] == N * G else x[:3]

  few = jax.tree.map(rows, traj)
  with jax.set_mesh(mesh):
    found = sampled(params, few)
  np.testing.assert_array_equal(found, on_one_device()[0].response_BT[: 3 * G])
