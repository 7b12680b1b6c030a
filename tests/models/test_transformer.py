"""The shared-prefix forward, prefill and decode against a plain model."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import models
from rl_jax.models import decoding, presets, products
from rl_jax.models import params as params_lib

CFG = presets.small(
  vocab_size=19, width=24, num_heads=4, head_size=6, mlp_size=40
)
VARIANTS = {
  'llama': dataclasses.replace(
    CFG,
    rope_scaling=models.RopeScaling(
      factor=8.0,
      low_freq_factor=1.0,
      high_freq_factor=4.0,
      original_max_positions=16,
    ),
    tied_embeddings=False,
  ),
  'qwen2': dataclasses.replace(CFG, qkv_bias=True, num_kv_heads=1),
  'qwen3': dataclasses.replace(CFG, qk_norm=True, num_kv_heads=4),
  # Of the two layers the first has a window.
  'gemma2': dataclasses.replace(
    CFG,
    norm_offset=True,
    post_norms=True,
    scaled_embeddings=True,
    activation='gelu_tanh',
    query_pre_attn_scalar=3.0,
    attention_cap=1.5,
    logit_cap=2.0,
    window=4,
    windowed=(0,),
  ),
  'gemma3': dataclasses.replace(
    CFG,
    qk_norm=True,
    rope_theta=1e4,
    rope_scaling=models.LinearScaling(factor=3.0),
    window=3,
    windowed=(1,),
    window_rope_theta=100.0,
  ),
  'yarn': dataclasses.replace(
    CFG,
    rope_theta=50.0,
    rope_scaling=models.YarnScaling(
      factor=4.0,
      original_max_positions=40,
      attention_factor=1.2,
      beta_fast=4.0,
    ),
    window=2,
    windowed=(0, 1),
  ),
  'experts': dataclasses.replace(
    CFG,
    qk_norm=True,
    qk_norm_whole=True,
    num_experts=5,
    experts_per_token=2,
    mlp_size=12,
  ),
}
N, G, P, T = 3, 2, 5, 4
FORWARD = jax.jit(models.forward, static_argnums=1)


@functools.cache
def make_params(cfg):
  """Random parameters, also those that start at 0 or 1."""
  params = params_lib.init_params(cfg, jax.random.key(0))
  leaves, tree = jax.tree.flatten(params)
  # Drawn by NumPy: jax.random would compile a program for every shape.
  rng = np.random.default_rng(1)
  noise = [x + 0.2 * np.float32(rng.normal(size=x.shape)) for x in leaves]
  return jax.tree.unflatten(tree, noise)


def make_batch(num_prompts=N, group_size=G, prompt=P, response=T, seed=0):
  """Prompts left-padded and responses right-padded to random lengths."""
  rng = np.random.default_rng(seed)
  rows = num_prompts * group_size
  prompt_NP = rng.integers(1, 19, (num_prompts, prompt)).astype(np.int32)
  prompt_mask_NP = np.ones((num_prompts, prompt), np.float32)
  for n in range(1, num_prompts):
    prompt_mask_NP[n, : rng.integers(0, prompt)] = 0
  response_BT = rng.integers(1, 19, (rows, response)).astype(np.int32)
  length_B = rng.integers(1, response + 1, rows)
  length_B[0] = response
  response_mask_BT = np.arange(response) < length_B[:, None]
  return (
    prompt_NP,
    prompt_mask_NP,
    response_BT,
    response_mask_BT.astype(np.float32),
  )


def logp_of(params, cfg, hidden_BTD, response_BT):
  logp = jax.nn.log_softmax(models.logits(params, cfg, hidden_BTD))
  return jnp.take_along_axis(logp, jnp.asarray(response_BT)[..., None], -1)[
    ..., 0
  ]


def gradient(forward, params, cfg, batch):
  """The gradient of a loss that weighs every real token differently."""
  row_B1, token_1T = np.ogrid[: batch[2].shape[0], : batch[2].shape[1]]
  weight_BT = jnp.asarray(np.cos(7 * row_B1 + token_1T) * batch[3])

  def loss(params):
    hidden = forward(params, cfg, *batch)
    return (logp_of(params, cfg, hidden, batch[2]) * weight_BT).sum()

  return jax.jit(jax.grad(loss))(params)


def assert_same(a, b, rtol=1e-5):
  """E1: differences below rtol of the largest entry of each array."""
  for (path, x), y in zip(
    jax.tree_util.tree_leaves_with_path(a), jax.tree.leaves(b), strict=True
  ):
    scale = max(float(jnp.abs(y).max()), 1e-3)
    gap = float(jnp.abs(x - y).max())
    assert gap <= rtol * scale, (jax.tree_util.keystr(path), gap, scale)


@pytest.mark.parametrize(
  'name',
  [
    # Grouped keys and biases stay in the fast suite; all run in test-all.
    pytest.param(name, marks=() if name == 'qwen2' else pytest.mark.slow)
    for name in VARIANTS
  ],
)
def test_shared_prefix_equals_plain_rows_in_values_and_gradients(
  name, plain_forward
):
  """E1: encoding a prompt once for its group changes nothing."""
  cfg, batch = VARIANTS[name], make_batch()
  params = make_params(cfg)
  assert_same(FORWARD(params, cfg, *batch), plain_forward(params, cfg, *batch))
  assert_same(
    gradient(models.forward, params, cfg, batch),
    gradient(plain_forward, params, cfg, batch),
  )


def test_padding_of_prompt_and_response_changes_nothing():
  """E1: values and gradients with 3 more columns on either side."""
  cfg = VARIANTS['qwen3']
  params, batch = make_params(cfg), make_batch()
  prompt, mask, response, response_mask = batch
  left, right = ((0, 0), (3, 0)), ((0, 0), (0, 3))
  padded = (
    np.pad(prompt, left, constant_values=7),
    np.pad(mask, left),
    np.pad(response, right, constant_values=9),
    np.pad(response_mask, right),
  )
  hidden = FORWARD(params, cfg, *padded)
  assert_same(hidden[:, :T], FORWARD(params, cfg, *batch))
  np.testing.assert_array_equal(hidden[padded[3] == 0], 0.0)
  assert_same(
    gradient(models.forward, params, cfg, padded)['model']['layers'],
    gradient(models.forward, params, cfg, batch)['model']['layers'],
  )


def test_order_of_groups_and_of_rows_changes_nothing():
  """E1: permuted groups and permuted samples give permuted states."""
  params, batch = make_params(CFG), make_batch()
  hidden = FORWARD(params, CFG, *batch).reshape(N, G, T, -1)
  groups, rows = np.array([2, 0, 1]), np.array([1, 0])

  def permute(x):
    return x.reshape(N, G, T)[groups][:, rows].reshape(N * G, T)

  moved = FORWARD(
    params,
    CFG,
    batch[0][groups],
    batch[1][groups],
    permute(batch[2]),
    permute(batch[3]),
  )
  assert_same(moved.reshape(N, G, T, -1), hidden[groups][:, rows])


@pytest.mark.parametrize(
  'sizes',
  [
    (1, 1, 1, 1),
    pytest.param((1, 3, 2, 5), marks=pytest.mark.slow),
    pytest.param((1, 1, 5, 4), marks=pytest.mark.slow),
    pytest.param((3, 1, 4, 1), marks=pytest.mark.slow),
  ],
)
def test_small_and_odd_batches(sizes, plain_forward):
  """E1: one row, one token, odd sizes, prompts of one token."""
  batch = make_batch(*sizes)
  params = make_params(CFG)
  assert_same(FORWARD(params, CFG, *batch), plain_forward(params, CFG, *batch))


@pytest.mark.parametrize(
  ('name', 'transposed'),
  [
    pytest.param(
      name,
      transposed,
      marks=pytest.mark.slow if name in ('gemma3', 'yarn') else (),
    )
    for name in VARIANTS
    for transposed in (False, True)
    if name not in ('gemma2', 'experts') or transposed
  ],
)
def test_prefill_and_decode_agree_with_forward(monkeypatch, name, transposed):
  """Sampler and trainer: log-probs of the same tokens differ below 1e-5.

  On every machine with the MLP as both kinds of CPU have it.
  """
  monkeypatch.setattr(decoding, 'copies_right_factors', lambda _: transposed)
  cfg = VARIANTS[name]
  params, batch = make_params(cfg), make_batch()
  expected = logp_of(params, cfg, FORWARD(params, cfg, *batch), batch[2])
  hidden_ND, prompt_cache = models.prefill(params, cfg, *batch[:2])
  cache = models.extend(cfg, prompt_cache, N * G, T - 1)
  hidden = [jnp.repeat(hidden_ND, G, axis=0)]
  decode = jax.jit(models.decode_step, static_argnums=1)
  weights = models.decoding_weights(params, cfg)
  assert ('mlp' in weights['layers'][0]) == (transposed and not cfg.num_experts)
  for step in range(T - 1):
    token_B = jnp.asarray(batch[2][:, step])
    step_B = jnp.full_like(token_B, step)
    hidden_BD, cache = decode(weights, cfg, token_B, step_B, step, cache)
    hidden.append(hidden_BD)
  logp = logp_of(params, cfg, jnp.stack(hidden, 1), batch[2])
  np.testing.assert_allclose(logp * batch[3], expected * batch[3], atol=1e-5)


def test_the_product_has_the_gradient_of_a_matrix_product():
  """E1, in both shapes; the transposed copy changes nothing."""
  rng = np.random.default_rng(0)
  for inputs, outputs in ((3, 7), (7, 3)):
    x, weight, dy = (
      jnp.asarray(rng.normal(size=shape), jnp.float32)
      for shape in ((5, inputs), (inputs, outputs), (5, outputs))
    )
    _, plain = jax.vjp(jnp.matmul, x, weight)
    y, found = jax.vjp(products.product, x, weight)
    np.testing.assert_allclose(y, x @ weight, rtol=1e-5)
    for one, other in zip(found(dy), plain(dy), strict=True):
      np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.slow
def test_remat_gives_the_same_gradients():
  """E1: recomputing activations changes only memory and time."""
  params, batch = make_params(CFG), make_batch()
  remat = dataclasses.replace(CFG, remat=True)
  assert_same(
    gradient(models.forward, params, remat, batch),
    gradient(models.forward, params, CFG, batch),
  )

  def count(cfg):
    return str(
      jax.make_jaxpr(
        lambda params: gradient(models.forward, params, cfg, batch)
      )(params)
    ).count('dot_general')

  assert count(remat) > count(CFG)


@pytest.mark.slow
def test_bfloat16_is_finite_and_near_float32():
  """Statistics stay float32: a bfloat16 model is off by rounding only."""
  half = dataclasses.replace(
    CFG, compute_dtype='bfloat16', param_dtype='bfloat16'
  )
  params, batch = make_params(CFG), make_batch()
  small = jax.tree.map(lambda x: x.astype(jnp.bfloat16), params)
  hidden = FORWARD(small, half, *batch)
  assert hidden.dtype == jnp.bfloat16
  assert models.logits(small, half, hidden).dtype == jnp.float32
  gap = logp_of(small, half, hidden, batch[2]) - logp_of(
    params, CFG, FORWARD(params, CFG, *batch), batch[2]
  )
  assert float(jnp.abs(gap * batch[3]).max()) < 0.2
  gradients = gradient(models.forward, small, half, batch)
  assert all(jnp.isfinite(x).all() for x in jax.tree.leaves(gradients))


def test_a_group_without_any_real_token_gives_finite_numbers():
  """Rows that only fill a batch give no NaN."""
  params, batch = make_params(CFG), make_batch()
  batch[1][2], batch[3][4:] = 0, 0
  hidden = FORWARD(params, CFG, *batch)
  assert jnp.isfinite(hidden).all()
  gradients = gradient(models.forward, params, CFG, batch)
  assert all(jnp.isfinite(x).all() for x in jax.tree.leaves(gradients))


def test_values_read_the_head():
  """v = w . hidden + b; a new head gives 0."""
  cfg = dataclasses.replace(CFG, value_head=True)
  params = params_lib.init_params(cfg, jax.random.key(0))
  hidden = jnp.ones((2, 3, cfg.width), jnp.bfloat16)
  np.testing.assert_array_equal(models.values(params, hidden), 0.0)
  params['value_head'] = {'w': jnp.full(cfg.width, 0.5), 'b': jnp.float32(1)}
  values = models.values(params, hidden)
  assert values.dtype == jnp.float32
  np.testing.assert_allclose(values, np.full((2, 3), 13.0))  # 24 * 0.5 + 1
  all_values = models.all_values(params, hidden)
  np.testing.assert_array_equal(all_values, values[..., None])


def test_several_values_are_several_heads():
  """E1: each output is its own head; `values` is the first."""
  cfg = dataclasses.replace(CFG, value_head=True, num_values=3)
  head = params_lib.init_params(cfg, jax.random.key(0))['value_head']
  assert {n: x.shape for n, x in head.items()} == {'w': (3, 24), 'b': (3,)}
  rng = np.random.default_rng(0)
  head = {n: jnp.asarray(rng.normal(size=x.shape)) for n, x in head.items()}
  hidden = jnp.asarray(rng.normal(size=(2, cfg.width)))

  def one(h):
    return {'value_head': {n: x[h] for n, x in head.items()}}

  expected = [models.values(one(h), hidden) for h in range(3)]
  params = {'value_head': head}
  np.testing.assert_allclose(
    models.all_values(params, hidden), np.stack(expected, -1), rtol=1e-5
  )
  np.testing.assert_array_equal(models.values(params, hidden), expected[0])


@pytest.mark.parametrize(
  'change, message',
  [
    ({'num_heads': 3}, 'num_heads = 3 is not a multiple of num_kv_heads = 2'),
    ({'head_size': 5}, 'head_size = 5 is odd'),
    ({'num_values': 2}, 'num_values = 2 needs value_head = True'),
    ({'lora_targets': ('wx',)}, "'wx'"),
    ({'compute_dtype': 'int8'}, 'compute_dtype'),
    ({'num_layers': 0}, 'num_layers'),
    ({'window': 4}, 'window = 4 and windowed = .*both or neither'),
    ({'window': 4, 'windowed': (2,)}, 'windowed = .2,.: the layers are 0 to 1'),
    ({'window_rope_theta': 10.0}, 'window_rope_theta without a window'),
    ({'num_experts': 4}, 'experts_per_token = 0 and num_experts = 4'),
    ({'experts_per_token': 1}, 'experts_per_token = 1 and num_experts = 0'),
    ({'normalized_gates': True}, 'normalized_gates without num_experts'),
    ({'qk_norm_whole': True}, 'qk_norm_whole without qk_norm'),
  ],
)
def test_impossible_configurations_are_refused(change, message):
  """The error names the field before anything is compiled."""
  with pytest.raises(ValueError, match=message):
    dataclasses.replace(CFG, **change)
