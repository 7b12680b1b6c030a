"""Fused attention: rows as causal sequences, and what is in the programs."""

import functools
import re

import jax
from jax._src.cudnn import fused_attention_stablehlo as jax_cudnn
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax import models
from rl_jax.models import attention, attention_kernels
from rl_jax.runtime import mesh as mesh_lib

N, G, P, S, J, R, K = 3, 2, 5, 4, 2, 2, 8


def arrays(seed=0):
  """Prompts left-padded by 0, 2 and 5 (all) tokens, and responses."""
  rng = np.random.default_rng(seed)

  def qkv(*lead):
    shapes = ((*lead, J, R, K), (*lead, J, K), (*lead, J, K))
    return tuple(jnp.asarray(rng.normal(size=s), jnp.float32) for s in shapes)

  pad_N1 = np.array([[0], [2], [5]])
  mask_NP = jnp.asarray(np.arange(P)[None] >= pad_N1, jnp.float32)
  return qkv(N, P), qkv(N, G, S), mask_NP


def plain(prompt, response, mask_NP):
  """The path without kernels, on the same arrays."""
  (qp, kp, vp), (q, k, v) = prompt, response
  k, v = (x.reshape(N * G, S, J, K) for x in (k, v))
  own = attention.attend_response(
    q,
    (*attention.cached(kp, vp), mask_NP),
    (*attention.cached(k, v), jnp.tril(jnp.ones((S, S), bool))),
  )
  first = attention.attend_prompt(qp, kp, vp, mask_NP)
  return jnp.concatenate([first, own.reshape(N, G * S, J, R, K)], axis=1)


@pytest.fixture
def reference(monkeypatch):
  """The layout of kernels, with plain products instead of the kernel."""
  entry = (attention_kernels.REFERENCE, 4)
  monkeypatch.setitem(attention_kernels.KERNELS, 'cudnn', entry)


def test_rows_as_causal_sequences_equal_two_merged_parts(reference):
  """E1: values at real tokens and all gradients, whatever the padding."""
  del reference
  weight = np.random.default_rng(1).normal(size=(1, P + G * S, J, R, K))

  @jax.jit
  def compare(prompt, response, mask_NP):
    ones = jnp.ones((N, G * S))
    real = jnp.concatenate([mask_NP, ones], axis=1)[:, :, None, None, None]

    def result(function):
      def total(prompt, response):
        out = function(prompt, response, mask_NP) * real
        return (out * weight.astype(np.float32)).sum(), out

      return jax.grad(total, argnums=(0, 1), has_aux=True)(prompt, response)

    attend = functools.partial(attention_kernels.attend, 'cudnn')
    alone = attend(prompt, None, mask_NP) * real[:, :P]
    return result(attend), result(plain), alone

  found, expected, alone = compare(*arrays())
  for x, y in zip(
    jax.tree.leaves(found), jax.tree.leaves(expected), strict=True
  ):
    np.testing.assert_allclose(x, y, atol=1e-5)
  np.testing.assert_allclose(alone, expected[1][:, :P], atol=1e-5)


@pytest.mark.parametrize('here', [None, True, False])
def test_windows_equal_those_of_plain_attention(reference, here):
  """E1: of all layers, and of one that has it or not."""
  del reference
  prompt, response, mask_NP = arrays()
  window = 3

  @jax.jit
  def compare(prompt, response, windowed):
    found = attention_kernels.attend(
      'cudnn',
      prompt,
      response,
      mask_NP,
      attention_kernels.Causal(window=window),
      windowed,
    )
    size = window if here is not False else 1000
    limits = attention.Limits(window=jnp.int32(size))
    (qp, kp, vp), (q, k, v) = prompt, response
    own = attention.attend_whole_responses(
      q,
      (kp, vp, mask_NP),
      tuple(x.reshape(N * G, S, J, K) for x in (k, v)),
      (jnp.arange(S), jnp.arange(S)),
      limits,
      causal=True,
    )
    first = attention.attend_prompt(qp, kp, vp, mask_NP, limits)
    own = own.reshape(N, G * S, J, R, K)
    return found, jnp.concatenate([first, own], axis=1)

  found, wanted = compare(
    prompt, response, None if here is None else jnp.asarray(here)
  )
  real = np.concatenate([mask_NP, np.ones((N, G * S))], axis=1) > 0
  np.testing.assert_allclose(found[real], wanted[real], atol=1e-5)


@pytest.mark.devices
def test_kernels_run_on_each_device_alone(reference):
  """E1: rows and key heads split over 8 devices, or not where odd."""
  del reference
  prompt, response, mask_NP = jax.tree.map(
    lambda x: jnp.concatenate([x, x[:1]]), arrays()
  )
  attend = functools.partial(attention_kernels.attend, 'cudnn')

  def total(prompt, response):
    out = attend(prompt, response, mask_NP)[:, P:]
    return jnp.sin(out).sum(), out

  gradient = jax.grad(total, argnums=(0, 1), has_aux=True)
  expected = jax.jit(gradient)(prompt, response)
  for shape in ((2, 2, 2), (8, 1, 1)):
    mesh = mesh_lib.make_mesh(
      mesh_lib.MeshConfig(data=shape[0], fsdp=shape[1], tensor=shape[2])
    )
    with jax.set_mesh(mesh):
      program = jax.jit(gradient)
      found = program(prompt, response)
      assert 'shard_map' in str(jax.make_jaxpr(gradient)(prompt, response))
    for x, y in zip(
      jax.tree.leaves(found), jax.tree.leaves(expected), strict=True
    ):
      np.testing.assert_allclose(x, y, atol=1e-5)


@pytest.mark.devices
def test_programs_of_several_devices_call_cudnn_on_each(monkeypatch):
  """With a mesh the program has the same call as on one device."""
  monkeypatch.setattr(jax_cudnn, 'check_cudnn_version', lambda: 91000)
  mesh = mesh_lib.make_mesh(mesh_lib.MeshConfig(data=2, fsdp=2, tensor=2))
  with jax.set_mesh(mesh):
    text = lowered('cudnn', 'cuda', prompts=4)
  assert len(re.findall(r'@__cudnn\$fmhaSoftmax\(', text)) == 1
  assert len(re.findall(r'@__cudnn\$fmhaSoftmaxBackward\(', text)) == 1


def test_gradients_of_the_copies_of_a_prompt_are_summed_in_float32():
  """1 + 512 times 2^-9 is 2; summed in bfloat16 it would stay 1."""
  copies = 513
  prompt = np.zeros((1, 1, 1, 1), jnp.bfloat16)
  response = np.zeros((1, copies, 1, 1), jnp.bfloat16)
  weight = np.full((1, copies, 2, 1), 2.0**-9, jnp.bfloat16)
  weight[0, 0] = 1

  def total(p):
    return (attention_kernels._append(p, response) * weight).sum()

  gradient = np.asarray(jax.jit(jax.grad(total))(prompt), np.float32)
  np.testing.assert_array_equal(gradient, 2.0)


@pytest.mark.slow
def test_splash_with_window_and_cap_equals_the_definition():
  """E1: interpreted on CPU."""
  rng = np.random.default_rng(0)
  q, k, v = (
    jnp.asarray(rng.normal(size=s), jnp.float32)
    for s in ((1, 256, 1, 2, 64), (1, 256, 1, 64), (1, 256, 1, 64))
  )
  limits = attention.Limits(cap=2.0, window=jnp.int32(100))
  found = attention_kernels.splash(
    q, k, v, attention_kernels.Causal(100, 2.0), interpret=True
  )
  wanted = attention.attend_prompt(q, k, v, jnp.ones((1, 256)), limits)
  np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.slow
def test_splash_equals_plain_products_by_interpretation():
  """E1: the Pallas kernel interpreted on CPU, values and gradients."""
  rng = np.random.default_rng(0)
  q, k, v = (
    jnp.asarray(rng.normal(size=s), jnp.float32)
    for s in ((1, 256, 1, 2, 64), (1, 256, 1, 64), (1, 256, 1, 64))
  )
  q = q / 8
  splash = functools.partial(attention_kernels.splash, interpret=True)

  def total(function):
    return lambda *x: (function(*x) * jnp.cos(jnp.arange(64.0))).sum()

  np.testing.assert_allclose(
    splash(q, k, v), attention_kernels.REFERENCE(q, k, v), atol=1e-5
  )
  with jax.numpy_rank_promotion('allow'):
    grads = jax.grad(total(splash), argnums=(0, 1, 2))(q, k, v)
    wanted = jax.grad(total(attention_kernels.REFERENCE), argnums=(0, 1, 2))
    for x, y in zip(grads, wanted(q, k, v), strict=True):
      np.testing.assert_allclose(x, y, atol=1e-4)


def lowered(kernel, platform, remat=False, prompts=2):
  """The text of forward and backward pass of a model for another platform."""
  cfg = models.ModelConfig(
    vocab_size=32,
    num_layers=2,
    width=64,
    num_heads=2,
    num_kv_heads=1,
    head_size=64,
    mlp_size=32,
    compute_dtype='bfloat16',
    attention=kernel,
    remat=remat,
  )
  params = jax.tree.map(
    lambda s: jax.ShapeDtypeStruct(s.shape, s.dtype),
    models.specs(cfg),
    is_leaf=models.is_spec,
  )
  shape = jax.ShapeDtypeStruct

  def loss(params, *batch):
    return models.forward(params, cfg, *batch).astype(jnp.float32).sum()

  traced = jax.jit(jax.grad(loss)).trace(
    params,
    shape((prompts, 5), jnp.int32),
    shape((prompts, 5), jnp.float32),
    shape((2 * prompts, 7), jnp.int32),
    shape((2 * prompts, 7), jnp.float32),
  )
  return traced.lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize(
  'remat, forwards', [(False, 1), pytest.param(True, 2, marks=pytest.mark.slow)]
)
def test_programs_for_nvidia_call_cudnn(monkeypatch, remat, forwards):
  """One call in the loop over layers forward, one backward; none is recomputed.

  With remat the forward pass is, by request. (jaxlib for CPU has no cuDNN.)
  """
  monkeypatch.setattr(jax_cudnn, 'check_cudnn_version', lambda: 91000)
  text = lowered('cudnn', 'cuda', remat)
  assert len(re.findall(r'@__cudnn\$fmhaSoftmax\(', text)) == forwards
  assert len(re.findall(r'@__cudnn\$fmhaSoftmaxBackward\(', text)) == 1
  assert '"mask_type": "CAUSAL"' in text.replace('\\22', '"')


@pytest.mark.slow
def test_programs_for_tpu_call_the_splash_kernel():
  """One kernel forward, two backward: of queries, and of keys and values."""
  text = lowered('splash', 'tpu')
  assert text.count('@tpu_custom_call') == 3
  for phase in ('fwd', 'dq', 'dkv'):
    assert f'splash_mha_{phase}' in text


def test_the_library_says_why_it_refuses():
  """Checks come before anything is compiled: this machine has no cuDNN."""
  assert attention_kernels.refusal('plain', 'float32', 6) is None
  reason = attention_kernels.refusal('cudnn', 'bfloat16', 64)
  assert 'cuDNN' in reason
