"""Attention by blocks of queries and keys equals the definition (E1)."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.models import attention, attention_blocks
from rl_jax.runtime import mesh as mesh_lib

N, P, J, R, K = 2, 11, 2, 3, 4


def make_inputs():
  rng = np.random.default_rng(0)
  q = rng.normal(size=(N, P, J, R, K)).astype(np.float32)
  k, v = rng.normal(size=(2, N, P, J, K)).astype(np.float32)
  mask_NP = np.ones((N, P), np.float32)
  mask_NP[0, :5] = 0  # the first block of three has no key at all
  return q, k, v, mask_NP


def defined(q, k, v, mask_NP):
  """One query at a time, in float64; 0 where there is no token."""
  out = np.zeros(q.shape)
  for n, p in zip(*np.nonzero(mask_NP), strict=True):
    seen = np.flatnonzero(mask_NP[n, : p + 1])
    for j in range(J):
      weights = np.exp(q[n, p, j].astype(float) @ k[n, seen, j].T)
      weights /= weights.sum(-1, keepdims=True)
      out[n, p, j] = weights @ v[n, seen, j]
  return out


def in_blocks(monkeypatch, size):
  """All lengths above `size` are attended by blocks of so many tokens."""
  monkeypatch.setattr(attention, 'WHOLE_QUERIES', min(size, 2))
  monkeypatch.setattr(attention_blocks, 'LEAST_BLOCK', size)


@pytest.mark.parametrize('size', [3, 4, 11])
def test_blocks_equal_the_definition(monkeypatch, size):
  """With a partial last block, and with a single block; padding gets 0."""
  in_blocks(monkeypatch, size)
  q, k, v, mask_NP = make_inputs()
  found = jax.jit(lambda *x: attention.attend_prompt(*x))(q, k, v, mask_NP)
  np.testing.assert_allclose(found, defined(q, k, v, mask_NP), atol=1e-6)


@pytest.mark.parametrize('size', [3, 4])
def test_gradients_do_not_depend_on_the_blocks(monkeypatch, size):
  """E1, of queries, keys and values."""
  q, k, v, mask_NP = make_inputs()
  cotangent = np.random.default_rng(1).normal(size=q.shape)
  cotangent *= mask_NP[:, :, None, None, None]

  def gradients():
    def out(*qkv):
      return (attention.attend_prompt(*qkv, mask_NP) * cotangent).sum()

    return jax.jit(jax.grad(out, argnums=(0, 1, 2)))(q, k, v)

  whole = gradients()
  in_blocks(monkeypatch, size)
  for found, expected in zip(gradients(), whole, strict=True):
    # Sums in another order: float32 rounding of gradients of size 1 to 2.
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)


def largest(function, *arrays):
  """Numbers of the largest array of a program."""
  shapes = re.findall(
    r'[a-z]+[0-9]*\[([0-9,]+)\]', str(jax.make_jaxpr(function)(*arrays))
  )
  return max(math.prod(map(int, shape.split(','))) for shape in shapes)


@pytest.mark.parametrize(('length', 'products'), [(128, 2), (1024, 2)])
def test_one_body_for_all_blocks(length, products):
  """A product with keys and one with values, whatever the length."""
  shape = jax.ShapeDtypeStruct
  jaxpr = jax.make_jaxpr(attention.attend_prompt)(
    shape((1, length, 1, 1, 4), jnp.float32),
    shape((1, length, 1, 4), jnp.float32),
    shape((1, length, 1, 4), jnp.float32),
    shape((1, length), jnp.float32),
  )
  assert str(jaxpr).count('dot_general[') == products


def whole_responses(causal, limits=attention.NO_LIMITS, context_BS=None):
  """attend_whole_responses of two groups, and the gradient of its inputs."""
  rng = np.random.default_rng(2)
  G, S = 2, 9
  q = rng.normal(size=(N, G, S, J, R, K)).astype(np.float32)
  k, v = rng.normal(size=(2, N * G, S, J, K)).astype(np.float32)
  _, kp, vp, mask_NP = make_inputs()
  cotangent = rng.normal(size=q.shape)
  steps = (jnp.arange(S), jnp.arange(S) - (not causal))

  def out(q, kp, vp, k, v):
    found = attention.attend_whole_responses(
      q,
      (kp, vp, mask_NP),
      (k, v),
      steps,
      limits,
      causal=causal,
      context_BS=context_BS,
    )
    return (found * cotangent).sum(), found

  gradient = jax.jit(jax.grad(out, argnums=range(5), has_aux=True))
  grads, found = gradient(q, kp, vp, k, v)
  return *grads, found


CONTEXT_BS = jnp.minimum(
  jnp.arange(9, dtype=jnp.int32)[None], jnp.array([[0], [2], [8], [5]])
)


@pytest.mark.parametrize(
  ('causal', 'size', 'limits', 'context_BS'),
  [
    (True, 2, attention.NO_LIMITS, None),
    (True, 4, attention.Limits(cap=0.5, window=jnp.int32(3)), None),
    (False, 2, attention.Limits(window=jnp.int32(12)), None),
    (True, 4, attention.Limits(window=jnp.int32(4)), CONTEXT_BS),
    pytest.param(False, 4, attention.NO_LIMITS, None, marks=pytest.mark.slow),
    pytest.param(
      True, 9, attention.Limits(cap=2.0), CONTEXT_BS, marks=pytest.mark.slow
    ),
  ],
)
def test_responses_do_not_depend_on_the_blocks(
  monkeypatch, causal, size, limits, context_BS
):
  """E1, in values and gradients."""
  expected = whole_responses(causal, limits, context_BS)
  in_blocks(monkeypatch, size)
  found = whole_responses(causal, limits, context_BS)
  for one, wanted in zip(found, expected, strict=True):
    np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-5)


def test_no_array_has_all_queries_and_keys():
  """An update with a response of 2,048 tokens to a prompt of 1,024."""
  length, prompt = 2048, 1024

  def array(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)

  step = jnp.arange(length)

  def out(q, kp, vp, k, v):
    return attention.attend_whole_responses(
      q,
      (kp, vp, jnp.ones((1, prompt))),
      (k, v),
      (step, step),
      attention.NO_LIMITS,
      causal=True,
    ).sum()

  most = largest(
    jax.grad(out, argnums=range(5)),
    array(1, 1, length, 1, 2, 4),
    array(1, prompt, 1, 4),
    array(1, prompt, 1, 4),
    array(1, length, 1, 4),
    array(1, length, 1, 4),
  )
  assert most <= 2 * 128 * 128  # scores of a pair of blocks, of two heads


@pytest.mark.parametrize(
  ('length', 'size'), [(100, 128), (2048, 128), (2049, 256), (8192, 512)]
)
def test_long_sequences_have_larger_blocks(length, size):
  """At most 16 blocks up to 16,384 tokens, then blocks of 1,024."""
  assert attention_blocks.block_size(length) == size
  assert attention_blocks.block_size(32768) == 1024


@pytest.mark.devices
def test_blocks_run_on_each_device(monkeypatch):
  """E1: rows and key heads split over 8 devices, as without a mesh."""
  in_blocks(monkeypatch, 4)
  expected = whole_responses(True)
  for data, fsdp, tensor in ((2, 1, 2), (1, 2, 2), (1, 2, 4)):
    cfg = mesh_lib.MeshConfig(data=data, fsdp=fsdp, tensor=tensor)
    devices = jax.devices()[: data * fsdp * tensor]
    with jax.set_mesh(mesh_lib.make_mesh(cfg, devices)):
      found = whole_responses(True)
    for one, wanted in zip(found, expected, strict=True):
      np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-5)
