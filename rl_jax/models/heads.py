"""What is read off the hidden states: logits and values."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from rl_jax.models import spec
from rl_jax.types import Array


def logits(params: dict[str, Any], cfg: Any, hidden: Array) -> Array:
  """Scores of the next token, float32[..., V], from hidden [..., D]."""
  dtype = cfg.compute_dtype
  if cfg.tied_embeddings:
    equation, weight = '...d,vd->...v', params['model']['embed']
  else:
    equation, weight = '...d,dv->...v', params['model']['lm_head']
  return _product(equation, hidden.astype(dtype), weight.astype(dtype))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _product(equation: str, hidden: Array, weight: Array) -> Array:
  """In float32; backward products have operands of the inputs' dtype.

  Autodiff would multiply a float32 cotangent, at half the speed or less.
  """
  return jnp.einsum(
    equation, hidden, weight, preferred_element_type=jnp.float32
  )


def _product_gradient(equation, operands, g):
  _, vjp = jax.vjp(lambda *xy: jnp.einsum(equation, *xy), *operands)
  return vjp(g.astype(operands[0].dtype))


_product.defvjp(
  lambda equation, *xy: (_product(equation, *xy), xy), _product_gradient
)


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
