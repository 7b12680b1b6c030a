"""Attention within prompts by blocks of queries equals the definition (E1)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rl_jax.models import attention

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


@pytest.mark.parametrize('queries', [3, 4, 11])
def test_blocks_of_queries_equal_the_definition(monkeypatch, queries):
  """With a partial last block, and with a single block."""
  monkeypatch.setattr(attention, 'LEAST_QUERIES', queries)
  q, k, v, mask_NP = make_inputs()
  found = jax.jit(lambda *x: attention.attend_prompt(*x))(q, k, v, mask_NP)
  real = mask_NP[:, :, None, None, None]
  np.testing.assert_allclose(found * real, defined(q, k, v, mask_NP), atol=1e-6)
  assert np.isfinite(found).all()


@pytest.mark.parametrize('queries', [3, 4])
def test_gradients_do_not_depend_on_the_blocks(monkeypatch, queries):
  """E1, of queries, keys and values."""
  q, k, v, mask_NP = make_inputs()
  cotangent = np.random.default_rng(1).normal(size=q.shape)
  cotangent *= mask_NP[:, :, None, None, None]

  def gradients():
    def out(*qkv):
      return (attention.attend_prompt(*qkv, mask_NP) * cotangent).sum()

    return jax.jit(jax.grad(out, argnums=(0, 1, 2)))(q, k, v)

  whole = gradients()
  monkeypatch.setattr(attention, 'LEAST_QUERIES', queries)
  for found, expected in zip(gradients(), whole, strict=True):
    # Sums in another order: float32 rounding of gradients of size 1 to 2.
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(
  ('length', 'blocks'), [(128, 1), (129, 2), (512, 4), (4096, 8)]
)
def test_blocks_have_128_queries_or_are_eight(length, blocks):
  """Two products per block, each of which must be compiled."""
  shape = jax.ShapeDtypeStruct
  jaxpr = jax.make_jaxpr(attention.attend_prompt)(
    shape((1, length, 1, 1, 4), jnp.float32),
    shape((1, length, 1, 4), jnp.float32),
    shape((1, length, 1, 4), jnp.float32),
    shape((1, length), jnp.float32),
  )
  assert str(jaxpr).count('dot_general[') == 2 * blocks


def whole_responses(causal, limits=attention.NO_LIMITS):
  """attend_whole_responses of two groups, and the gradient of its inputs."""
  rng = np.random.default_rng(2)
  G, S = 2, 9
  q = rng.normal(size=(N, G, S, J, R, K)).astype(np.float32)
  k, v = rng.normal(size=(2, N * G, S, J, K)).astype(np.float32)
  _, kp, vp, mask_NP = make_inputs()
  cotangent = rng.normal(size=q.shape)
  steps = (jnp.arange(S), jnp.arange(S))

  def out(q, kp, vp, k, v):
    found = attention.attend_whole_responses(
      q, (kp, vp, mask_NP), (k, v), steps, limits, causal=causal
    )
    return (found * cotangent).sum(), found

  gradient = jax.jit(jax.grad(out, argnums=range(5), has_aux=True))
  grads, found = gradient(q, kp, vp, k, v)
  return *grads, found


@pytest.mark.parametrize(
  ('causal', 'span', 'limits'),
  [
    pytest.param(True, 2, attention.NO_LIMITS, marks=pytest.mark.slow),
    (True, 4, attention.Limits(cap=0.5, window=jnp.int32(3))),
    (False, 2, attention.Limits(window=jnp.int32(12))),
    pytest.param(False, 4, attention.NO_LIMITS, marks=pytest.mark.slow),
  ],
)
def test_responses_do_not_depend_on_the_blocks(
  monkeypatch, causal, span, limits
):
  """E1, in values and gradients; with spans that are computed again."""
  expected = whole_responses(False, limits)
  monkeypatch.setattr(attention, 'LEAST_QUERIES', 4)
  monkeypatch.setattr(attention, 'SPAN_QUERIES', span)
  found = whole_responses(causal, limits)
  for one, wanted in zip(found, expected, strict=True):
    np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-5)


def test_a_span_that_is_not_full(monkeypatch):
  """Nine queries in one block of spans of four."""
  expected = whole_responses(causal=True)
  monkeypatch.setattr(attention, 'SPAN_QUERIES', 4)
  for found, wanted in zip(whole_responses(True), expected, strict=True):
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
  ('length', 'queries'), [(100, 100), (512, 256), (1024, 512), (8192, 256)]
)
def test_scores_of_long_responses_are_few(length, queries):
  """What the memory plan counts."""
  assert attention.queries_at_once(length) == queries
