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


def value_specs(width: int) -> dict[str, spec.ParamSpec]:
  """A linear value head that starts at 0; always float32."""
  return {
    'w': spec.ParamSpec((width,), 'float32', (None,), spec.ZEROS),
    'b': spec.ParamSpec((), 'float32', (), spec.ZEROS),
  }


def values(params: dict[str, Any], hidden: Array) -> Array:
  """Expected return from here on, float32[...], from hidden [..., D]."""
  head = params['value_head']
  weighted = jnp.einsum('...d,d->...', hidden.astype(jnp.float32), head['w'])
  return weighted + jnp.broadcast_to(head['b'], weighted.shape)
