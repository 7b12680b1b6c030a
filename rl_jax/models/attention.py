"""Attention within prompts, and of responses to their group's prompt."""

import jax
from jax import lax
import jax.numpy as jnp

from rl_jax.types import Array

# Finite, so that a row without any key gives finite numbers, not NaN.
MASKED = -1e30


def _scores(equation: str, q: Array, k: Array, mask: Array) -> Array:
  scores = jnp.einsum(equation, q, k, preferred_element_type=jnp.float32)
  return jnp.where(jnp.broadcast_to(mask, scores.shape), scores, MASKED)


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

  prompt: keys and values [N, P, J, K], mask [N, P]; one matrix product per
  group and key head, not G. own: keys and values [N, G, T, J, K], mask
  [S, T]. The two softmax parts are merged by their common maximum and sum.
  """
  pk, pv, mask_NP = prompt
  k, v, mask_ST = own
  prompt_mask = (mask_NP > 0)[:, None, None, None, None]
  prompt_scores = _scores('ngsjrk,npjk->njgsrp', q_NGSJRK, pk, prompt_mask)
  own_mask = mask_ST[None, None, None, :, None]
  scores = _scores('ngsjrk,ngtjk->ngjsrt', q_NGSJRK, k, own_mask)
  swap = lambda x: jnp.swapaxes(x, 1, 2)  # njgsr <-> ngjsr
  peak = lax.stop_gradient(
    jnp.maximum(swap(prompt_scores.max(-1)), scores.max(-1))
  )
  prompt_weights = jnp.exp(prompt_scores - swap(peak)[..., None])
  weights = jnp.exp(scores - peak[..., None])
  total_NGJSR = swap(prompt_weights.sum(-1)) + weights.sum(-1)
  out = jnp.einsum(
    'njgsrp,npjk->ngsjrk',
    prompt_weights.astype(pv.dtype),
    pv,
    preferred_element_type=jnp.float32,
  ) + jnp.einsum(
    'ngjsrt,ngtjk->ngsjrk',
    weights.astype(v.dtype),
    v,
    preferred_element_type=jnp.float32,
  )
  total_NGSJR = jnp.moveaxis(total_NGJSR, 2, 3)
  return (out / total_NGSJR[..., None]).astype(q_NGSJRK.dtype)
