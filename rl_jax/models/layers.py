"""The parts of a decoder layer, used by training and by decoding alike."""

import math
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from rl_jax.models import lora, mixed_precision, rope
from rl_jax.types import Array


def norm(x: Array, scale: Array, eps: float) -> Array:
  """x / sqrt(mean(x^2) + eps) * scale over the last axis, in float32."""
  x32 = x.astype(jnp.float32)
  inverse = lax.rsqrt(jnp.mean(x32 * x32, axis=-1, keepdims=True) + eps)
  scale32 = jnp.broadcast_to(scale.astype(jnp.float32), x.shape)
  return (x32 * inverse * scale32).astype(x.dtype)


@jax.custom_vjp
def _product(x: Array, weight: Array) -> Array:
  """x @ weight; on CPU its gradient x^T dy multiplies a stored transpose.

  XLA on CPU contracts first dimensions at half the speed of others. The
  narrower one of x and dy is transposed: less is written, and a wide x would be
  computed column by column (25 times slower).
  """
  return x @ weight


def _product_backward(saved, dy):
  x, weight = saved
  if x.shape[1] <= dy.shape[1]:
    gradient = _written(x.T) @ dy
  else:
    gradient = _written(_written(dy.T) @ x).T
  return dy @ weight.T, gradient


def _written(x: Array) -> Array:
  """x, stored: on CPU no product transposes it again while reading it."""
  return lax.platform_dependent(
    x, cpu=lax.optimization_barrier, default=lambda x: x
  )


_product.defvjp(lambda x, weight: (x @ weight, (x, weight)), _product_backward)


def _dense(x: Array, weight: Array, inputs: int) -> Array:
  """Contracts the last dimensions of x with the first ones of weight.

  It is one product of two matrices: with more dimensions XLA on CPU runs the
  transposed products of the backward pass at less than half the speed.
  """
  lead, tail = x.shape[: x.ndim - inputs], weight.shape[inputs:]
  size = math.prod(weight.shape[:inputs])
  y = _product(x.reshape(-1, size), weight.astype(x.dtype).reshape(size, -1))
  return y.reshape(*lead, *tail)


def project(layer: dict, cfg: Any, name: str, x: Array) -> Array:
  """x W, plus the adapter's (x a) b * (alpha / rank) if there is one."""
  inputs = lora.num_inputs(name)
  y = _dense(x, layer['base'][name], inputs)
  if name in layer['lora']:
    adapter = layer['lora'][name]
    low = _dense(x, adapter['a'], inputs)
    y = y + _dense(low, adapter['b'], 1) * (cfg.lora_alpha / cfg.lora_rank)
  return y


def qkv(layer, cfg, x, tables) -> tuple[Array, Array, Array]:
  """Queries [..., J, H/J, K], scaled; keys and values [..., J, K]."""
  base = layer['base']
  h = norm(x, base['attn_norm'], cfg.norm_eps)
  q, k, v = (project(layer, cfg, name, h) for name in ('wq', 'wk', 'wv'))
  if cfg.qkv_bias:
    q, k, v = (
      mixed_precision.add_bias(y, base[name])
      for y, name in ((q, 'bq'), (k, 'bk'), (v, 'bv'))
    )
  if cfg.qk_norm:
    q = norm(q, base['q_norm'], cfg.norm_eps)
    k = norm(k, base['k_norm'], cfg.norm_eps)
  q = rope.rotate(q, tables) * cfg.head_size**-0.5
  shape = (*x.shape[:-1], cfg.num_kv_heads, -1, cfg.head_size)
  return q.reshape(shape), rope.rotate(k, tables), v


def finish_layer(layer, cfg, x, attended) -> Array:
  """Adds the attention's output and the MLP to the residual stream."""
  attended = attended.reshape(*x.shape[:-1], cfg.num_heads, cfg.head_size)
  x = x + project(layer, cfg, 'wo', attended)
  h = norm(x, layer['base']['mlp_norm'], cfg.norm_eps)
  if 'mlp' in layer:
    return x + _transposed_mlp(layer['mlp'], h)
  gate = jax.nn.silu(project(layer, cfg, 'w_gate', h))
  up = project(layer, cfg, 'w_up', h)
  return x + project(layer, cfg, 'w_down', gate * up)


def _transposed_mlp(weights: tuple[Array, Array, Array], h_BD: Array) -> Array:
  """The MLP of few rows, in [F, B], by weights [outputs, inputs].

  Where XLA copies the right factor of a product, it copies the states here, not
  the weights: 32 rows take two thirds of the time.
  """
  gate, up, down = weights
  last = (((1,), (1,)), ((), ()))
  gate_FB = jax.nn.silu(lax.dot_general(gate, h_BD, last))
  y_DB = down @ (gate_FB * lax.dot_general(up, h_BD, last))
  # Without the barrier XLA would merge the transposition into the product.
  return lax.optimization_barrier(y_DB).T


def stacked_layers(params) -> dict[str, Any]:
  """Weights and adapters of all layers, stacked along the first axis."""
  adapters = params['lora']['layers'] if 'lora' in params else {}
  return {'base': params['model']['layers'], 'lora': adapters}


def embed(params, cfg, token) -> Array:
  """The input states [..., D] in the compute dtype."""
  table = params['model']['embed']
  return mixed_precision.lookup(table, token, cfg.compute_dtype)
