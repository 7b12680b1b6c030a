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


def value_specs(width: int, num_values: int = 1) -> dict[str, spec.ParamSpec]:
  """Linear value heads that start at 0; always float32."""
  heads = () if num_values == 1 else (num_values,)
  none = (None,) * len(heads)
  return {
    'w': spec.ParamSpec((*heads, width), 'float32', (*none, None), spec.ZEROS),
    'b': spec.ParamSpec(heads, 'float32', none, spec.ZEROS),
  }


def all_values(params: dict[str, Any], hidden: Array) -> Array:
  """Expected returns from here on, float32[..., H], from hidden [..., D]."""
  head = params['value_head']
  w_HD, b_H = jnp.atleast_2d(head['w']), jnp.atleast_1d(head['b'])
  weighted = jnp.einsum('...d,hd->...h', hidden.astype(jnp.float32), w_HD)
  return weighted + jnp.broadcast_to(b_H, weighted.shape)


def values(params: dict[str, Any], hidden: Array) -> Array:
  """Those of the first head, float32[...]."""
  head = params['value_head']
  if head['w'].ndim == 2:
    head = {'w': head['w'][0], 'b': head['b'][0]}
  weighted = jnp.einsum('...d,d->...', hidden.astype(jnp.float32), head['w'])
  return weighted + jnp.broadcast_to(head['b'], weighted.shape)
