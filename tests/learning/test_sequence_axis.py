"""Responses split over the sequence axis equal whole ones."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import decoding, models, types
from rl_jax.learning import statistics
from rl_jax.learning.statistics import Forward
from rl_jax.pieces.statistics import Certainty, GroupDivergence, GroupProbs
from rl_jax.runtime import layout
from rl_jax.runtime import mesh as mesh_lib

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
N, G, P = 4, 2, 5
PPO = ('logp', 'entropy', 'values')
OTHERS = ('logp', 'hidden', GroupProbs(), GroupDivergence(), Certainty())


def make_inputs(cfg, tokens, mesh):
  """Ragged prompts and responses, and weights far from uniform."""
  rng = np.random.default_rng(0)
  params = jax.tree.map(
    lambda x: rng.normal(0.0, 0.3, x.shape).astype(x.dtype),
    models.spec.abstract(models.specs(cfg)),
  )
  prompt_mask_NP = np.arange(P)[None] >= rng.integers(0, P, (N, 1))
  traj = decoding.start_trajectories(
    rng.integers(0, 26, (N, P)),
    prompt_mask_NP.astype('float32'),
    np.arange(N),
    group_size=G,
    max_response_tokens=tokens,
  )
  on_BT = np.arange(tokens) < rng.integers(1, tokens + 1, (N * G, 1))
  response_BT = rng.integers(0, 26, (N * G, tokens))
  traj = traj.replace(
    response_BT=jnp.asarray(response_BT, jnp.int32),
    kind_BT=jnp.where(on_BT, types.POLICY, types.PAD),
    mask_BT=jnp.asarray(on_BT, jnp.float32),
  )
  if mesh is None:
    return params, traj
  layout = mesh_lib.param_shardings(models.specs(cfg), mesh)
  return jax.device_put((params, traj), (layout, mesh_lib.rows(mesh)))


def scored(cfg, needs, tokens, mesh=None):
  """(gradients, statistics); every token and statistic weighs something."""

  def loss(params, traj):
    stats = statistics.token_statistics(
      Forward(model=cfg, temperature=0.7), params, traj, needs
    )

    def weigh(x):
      return jnp.sin(jnp.arange(x.size, dtype=x.dtype))

    return sum(weigh(x) @ x.ravel() for x in stats.values()), stats

  inputs = make_inputs(cfg, tokens, mesh)
  return jax.device_get(jax.jit(jax.grad(loss, has_aux=True))(*inputs))


on_one_device = functools.cache(scored)


def assert_equal_to_one_device(tiny, axes, needs, tokens, **changes):
  """E1: statistics and gradients on the first devices of a mesh."""
  cfg = dataclasses.replace(CFG, **changes)
  sizes = mesh_lib.MeshConfig(**axes)
  count = int(np.prod(list(axes.values())))
  mesh = mesh_lib.make_mesh(sizes, jax.devices()[:count])
  with jax.set_mesh(mesh):
    grads, stats = scored(cfg, needs, tokens, mesh)
  whole = dataclasses.replace(cfg, remat=False)
  one_grads, one_stats = on_one_device(whole, needs, tokens)
  for name in map(statistics.name_of, needs):
    np.testing.assert_allclose(
      stats[name], one_stats[name], rtol=1e-5, atol=2e-5, err_msg=name
    )
  assert tiny.relative_gap(grads, one_grads) < 1e-5


@pytest.mark.devices
def test_two_spans_of_a_response(tiny):
  """E1 for states; the slow tests below have gradients, which compile long."""
  rows, cfg = tiny.rollout(num_prompts=2, length=4), tiny.CFG
  rng = np.random.default_rng(0)
  params = jax.tree.map(
    lambda x: rng.normal(0.0, 0.3, x.shape).astype('float32'),
    models.spec.abstract({'model': models.specs(cfg)['model']}),
  )
  inputs = (
    rows.prompt_NP,
    rows.prompt_mask_NP,
    rows.response_BT,
    rows.mask_BT,
  )

  def states():
    return jax.jit(models.forward, static_argnums=1)(params, cfg, *inputs)

  one = states()
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(sequence=2), jax.devices()[:2])
  with jax.set_mesh(mesh):
    two = states()
  assert two.sharding.shard_shape(two.shape)[1] == 2
  np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-5)


@pytest.mark.devices
@pytest.mark.slow
@pytest.mark.parametrize(
  'axes',
  [
    dict(sequence=2),
    dict(sequence=4),
    dict(data=2, sequence=2),
    dict(fsdp=2, sequence=2),
    dict(tensor=2, sequence=2),
    dict(fsdp=2, sequence=2, tensor=2),
    dict(sequence=8),
  ],
)
def test_statistics_and_gradients(tiny, axes):
  """E1 on every kind of mesh; the vocabulary is split with tensor."""
  assert_equal_to_one_device(tiny, axes, PPO, 8)


@pytest.mark.devices
@pytest.mark.slow
@pytest.mark.parametrize(
  'axes', [dict(sequence=4), dict(fsdp=2, sequence=2, tensor=2)]
)
def test_windows_and_caps(tiny, axes):
  """E1, where a span's keys of interest lie on other devices."""
  limits = dict(attention_cap=1.0, window=3, windowed=(1,))
  assert_equal_to_one_device(tiny, axes, ('logp',), 8, **limits)


EXPERTS = dict(num_experts=4, experts_per_token=2, expert_products='chosen')


@pytest.mark.devices
@pytest.mark.slow
@pytest.mark.parametrize(
  ('axes', 'needs', 'tokens', 'changes'),
  [
    (dict(data=2, sequence=4), OTHERS, 8, {}),
    (dict(fsdp=2, sequence=2, tensor=2), OTHERS, 8, {}),
    (dict(fsdp=2, sequence=4), PPO, 8, dict(lora_rank=2)),
    (dict(fsdp=2, sequence=4), PPO, 8, dict(remat=True, qk_norm=True)),
    (dict(data=2, sequence=2, tensor=2), PPO, 8, EXPERTS),
    # Tokens that do not divide are not split.
    (dict(sequence=4), PPO, 6, {}),
  ],
)
def test_every_statistic_and_switch(tiny, axes, needs, tokens, changes):
  """E1: hidden states and groups, adapters, rematerialisation."""
  assert_equal_to_one_device(tiny, axes, needs, tokens, **changes)


@pytest.mark.devices
@pytest.mark.slow
def test_chunks_of_one_token_of_a_span(tiny, monkeypatch):
  """E1: memory only, also where no chunk holds a whole span."""
  on_one_device(CFG, PPO, 8)
  monkeypatch.setattr(statistics, 'CHUNK_ELEMENTS', 100)
  axes = dict(data=2, sequence=4)
  assert_equal_to_one_device(tiny, axes, PPO, 8)


def test_kernels_of_attention_are_refused():
  """While tracing: they would see a span without what lies before it."""
  cfg = dataclasses.replace(CFG, attention='splash')
  params, traj = jax.eval_shape(lambda: make_inputs(cfg, 8, None))
  mesh = mesh_lib.abstract_mesh(mesh_lib.MeshConfig(sequence=2))
  with jax.sharding.use_abstract_mesh(mesh):
    with pytest.raises(ValueError, match="'splash' .* Allowed: 'plain'"):
      jax.eval_shape(
        lambda p, t: statistics.token_statistics(Forward(model=cfg), p, t, PPO),
        params,
        traj,
      )


def test_sampling_has_rows_where_responses_are_split():
  """Also if only some of the axes divide the prompts."""
  mesh = mesh_lib.abstract_mesh(mesh_lib.MeshConfig(fsdp=2, sequence=4))
  with jax.sharding.use_abstract_mesh(mesh):
    assert layout.parts(8, 'rows') == 2
    assert layout.parts(8, 'sampled_rows') == 8
    assert layout.parts(4, 'sampled_rows') == 2
    assert layout.parts(12, 'tokens') == 4
    assert layout.parts(6, 'tokens') == 1
