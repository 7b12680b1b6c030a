"""Attention within prompts, and of responses to their group's prompt."""

import functools

import jax
from jax import lax
import jax.numpy as jnp

from rl_jax.types import Array

# Finite, so that a row without any key gives finite numbers, not NaN.
MASKED = -1e30


def _scores(equation: str, q: Array, k: Array, mask: Array) -> Array:
  scores = jnp.einsum(equation, q, k, preferred_element_type=jnp.float32)
  return jnp.where(jnp.broadcast_to(mask, scores.shape), scores, MASKED)


def cached(k: Array, v: Array) -> tuple[Array, Array]:
  """[..., T, J, K] -> keys [..., J, K, T] and values [..., J, T, K].

  In this order both products of a decoding step are plain row-major ones: on
  CPU they take a quarter of the time that [T, J, K] takes.
  """
  return jnp.moveaxis(k, -3, -1), jnp.swapaxes(v, -3, -2)


def attend_prompt(q_NPJRK, k_NPJK, v_NPJK, mask_NP) -> Array:
  """Causal attention within each prompt."""
  length = mask_NP.shape[1]
  causal_QP = jnp.tril(jnp.ones((length, length), bool))
  mask = causal_QP[None, None, :, None] & (mask_NP > 0)[:, None, None, None]
  scores = _scores('nqjrk,npjk->njqrp', q_NPJRK, k_NPJK, mask)
  weights = jax.nn.softmax(scores, axis=-1).astype(v_NPJK.dtype)
  return jnp.einsum('njqrp,npjk->nqjrk', weights, v_NPJK)


def attend_response(q_NGSJRK, prompt, own) -> Array:
  """Attention of responses to their group's prompt and to themselves.

  prompt: cached keys and values [N, J, ...] and mask [N, P]; one matrix
  product per group and key head, not G. own: cached keys and values
  [B, J, ...] and mask [S, T] or [B, S, T]. The two parts of the softmax are
  merged by their common maximum and sum. Every product is [x, J, rows, C] by
  [x, J, C, columns]: XLA on CPU has slow paths for most other orders.
  """
  (pk, pv, mask_NP), (k, v, mask_ST) = prompt, own
  N, G, S, J, R, K = q_NGSJRK.shape
  # The two orders of queries, and the way from the first to the second.
  q_own = jnp.moveaxis(q_NGSJRK, 3, 2).reshape(N * G, J, S * R, K)
  q_prompt = jnp.moveaxis(q_NGSJRK, 3, 1).reshape(N, J, G * S * R, K)

  def regroup(x):
    x = x.reshape(N, J, G, S * R, *x.shape[3:])
    return jnp.swapaxes(x, 1, 2).reshape(N * G, J, S * R, *x.shape[4:])

  def ungroup(x):
    x = x.reshape(N, G, J, S * R)
    return jnp.swapaxes(x, 1, 2).reshape(N, J, G * S * R)

  prompt_mask = (mask_NP > 0)[:, None, None]
  prompt_scores = _scores('njmk,njkp->njmp', q_prompt, pk, prompt_mask)
  own_mask = jnp.repeat(mask_ST, R, axis=-2)[..., None, :, :]
  scores = _scores('bjmk,bjkt->bjmt', q_own, k, own_mask)
  peak = lax.stop_gradient(
    jnp.maximum(regroup(prompt_scores.max(-1)), scores.max(-1))
  )
  prompt_weights = jnp.exp(prompt_scores - ungroup(peak)[..., None])
  weights = jnp.exp(scores - peak[..., None])
  total = regroup(prompt_weights.sum(-1)) + weights.sum(-1)
  product = functools.partial(jnp.einsum, preferred_element_type=jnp.float32)
  out = product('bjmt,bjtk->bjmk', weights.astype(v.dtype), v) + regroup(
    product('njmp,njpk->njmk', prompt_weights.astype(pv.dtype), pv)
  )
  out = (out / total[..., None]).astype(q_NGSJRK.dtype)
  return jnp.moveaxis(out.reshape(N, G, J, S, R, K), 2, 3)
