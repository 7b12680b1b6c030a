"""Responses split over the sequence axis equal whole ones."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import models, rollouts, scoring, sharding, types

pytestmark = [pytest.mark.devices, pytest.mark.slow]

CFG = models.ModelConfig(
  vocab_size=26,
  num_layers=2,
  width=32,
  num_heads=4,
  num_kv_heads=2,
  head_size=8,
  mlp_size=48,
  value_head=True,
)
N, G, P, T = 4, 2, 5, 8
NEEDS = ('logp', 'entropy', 'values', 'group_probs')


def make_inputs(mesh, rng):
  """Ragged prompts and responses, and weights far from uniform."""
  params = sharding.init_params(CFG, jax.random.key(0), mesh)
  params['model']['embed'] *= 5
  params['value_head']['w'] += 0.1
  prompt_mask_NP = np.arange(P)[None] >= rng.integers(0, P, (N, 1))
  traj = rollouts.start_trajectories(
    rng.integers(0, 26, (N, P)),
    prompt_mask_NP.astype('float32'),
    np.arange(N),
    group_size=G,
    max_response_tokens=T,
  )
  on_BT = jnp.asarray(np.arange(T) < rng.integers(1, T + 1, (N * G, 1)))
  traj = traj.replace(
    response_BT=jnp.asarray(rng.integers(0, 26, (N * G, T)), jnp.int32),
    kind_BT=jnp.where(on_BT, types.POLICY, types.PAD),
    mask_BT=on_BT.astype(jnp.float32),
  )
  if mesh is not None:
    traj = jax.device_put(traj, sharding.rows(mesh))
  return params, traj


def scored(mesh, remat):
  """(gradients, statistics), every token and statistic weighing something."""
  cfg = models.ModelConfig(**{**vars(CFG), 'remat': remat})

  def loss(params, traj):
    stats = scoring.token_statistics(params, cfg, traj, NEEDS, 0.7)
    weigh = lambda x: jnp.sin(jnp.arange(x.size, dtype=x.dtype)).reshape(
      x.shape
    )
    return sum((weigh(x) * x).sum() for x in stats.values()), stats

  inputs = make_inputs(mesh, np.random.default_rng(0))
  return jax.device_get(jax.jit(jax.grad(loss, has_aux=True))(*inputs))


@functools.cache
def on_one_device():
  """What the others must be equal to."""
  return scored(None, False)


@pytest.mark.parametrize(
  ('shape', 'remat', 'chunk'),
  [
    ((1, 2, 2, 2), False, 1 << 24),
    ((1, 1, 8, 1), True, 1 << 24),
    # One token of a span a chunk.
    ((2, 1, 4, 1), False, 100),
  ],
)
def test_statistics_and_gradients(tiny, monkeypatch, shape, remat, chunk):
  """E1 against one device; shape: data, fsdp, sequence, tensor."""
  one_grads, one_stats = on_one_device()
  monkeypatch.setattr(scoring, 'CHUNK_ELEMENTS', chunk)
  axes = dict(zip(sharding.AXES, shape, strict=True))
  mesh = sharding.make_mesh(sharding.MeshConfig(**axes))
  with jax.set_mesh(mesh):
    grads, stats = scored(mesh, remat)
  for name in NEEDS:
    np.testing.assert_allclose(
      stats[name], one_stats[name], rtol=1e-5, atol=2e-5, err_msg=name
    )
  assert tiny.relative_gap(grads, one_grads) < 1e-5
