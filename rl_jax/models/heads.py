"""Logits and values, computed from hidden states."""

from typing import Any

import jax.numpy as jnp

from rl_jax.models import attention, mixed_precision, spec
from rl_jax.types import Array


def logits(params: dict[str, Any], cfg: Any, hidden: Array) -> Array:
  """Scores of the next token, float32[..., V], from hidden [..., D]."""
  dtype = cfg.compute_dtype
  if cfg.tied_embeddings:
    equation, weight = '...d,vd->...v', params['model']['embed']
  else:
    equation, weight = '...d,dv->...v', params['model']['lm_head']
  scores = mixed_precision.product(
    equation, hidden.astype(dtype), weight.astype(dtype)
  )
  return attention.capped(scores, cfg.logit_cap)


def logits_of(
  params: dict[str, Any], cfg: Any, hidden: Array, ids: Array
) -> Array:
  """Scores of a few tokens, float32[..., K], from hidden [..., D]; ids [K]."""
  dtype = cfg.compute_dtype
  if cfg.tied_embeddings:
    weight_KD = params['model']['embed'][ids]
  else:
    weight_KD = params['model']['lm_head'][:, ids].T
  scores = mixed_precision.product(
    '...d,kd->...k', hidden.astype(dtype), weight_KD.astype(dtype)
  )
  return attention.capped(scores, cfg.logit_cap)


def value_specs(
  width: int, num_values: int = 1, layers: int = 1
) -> dict[str, spec.ParamSpec]:
  """Value heads that start at 0; always float32.

  layers: linear ones; between two lies max(0, x).
  """
  heads = () if num_values == 1 else (num_values,)
  none = (None,) * len(heads)
  found = {
    'w': spec.ParamSpec((*heads, width), 'float32', (*none, None), spec.ZEROS),
    'b': spec.ParamSpec(heads, 'float32', none, spec.ZEROS),
  }
  if layers == 2:
    shape, scale = (width, width), width**-0.5
    found |= {
      'inner_w': spec.ParamSpec(shape, 'float32', (None, None), scale),
      'inner_b': spec.ParamSpec((width,), 'float32', (None,), spec.ZEROS),
    }
  return found


def all_values(params: dict[str, Any], hidden: Array) -> Array:
  """Expected returns from here on, float32[..., H], from hidden [..., D]."""
  head = params['value_head']
  hidden = _inner(head, hidden)
  w_HD, b_H = jnp.atleast_2d(head['w']), jnp.atleast_1d(head['b'])
  weighted = jnp.einsum('...d,hd->...h', hidden, w_HD)
  return weighted + jnp.broadcast_to(b_H, weighted.shape)


def values(params: dict[str, Any], hidden: Array) -> Array:
  """The values of the first head, float32[...]."""
  head = params['value_head']
  hidden = _inner(head, hidden)
  w, b = head['w'], head['b']
  if w.ndim == 2:
    w, b = w[0], b[0]
  weighted = jnp.einsum('...d,d->...', hidden, w)
  return weighted + jnp.broadcast_to(b, weighted.shape)


def _inner(head, hidden):
  """Returns what the last layer reads, in float32."""
  hidden = hidden.astype(jnp.float32)
  if 'inner_w' not in head:
    return hidden
  inner = jnp.einsum('...d,ed->...e', hidden, head['inner_w'])
  bias = jnp.broadcast_to(head['inner_b'], inner.shape)
  return jnp.maximum(inner + bias, 0.0)
