"""The parts of a decoder layer, used by training and by decoding alike."""

import functools
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from rl_jax.models import (
  attention,
  attention_kernels,
  experts,
  lora,
  mixed_precision,
  products,
  rope,
)
from rl_jax.types import Array

ACTIVATIONS = {
  'silu': jax.nn.silu,
  'gelu_tanh': functools.partial(jax.nn.gelu, approximate=True),
}


def norm(x: Array, scale: Array, cfg: Any) -> Array:
  """x / sqrt(mean(x^2) + eps) * scale over the axes of scale, in float32.

  With cfg.norm_offset the factor is 1 + scale.
  """
  x32, axes = x.astype(jnp.float32), tuple(range(-scale.ndim, 0))
  if cfg.platform.steady_sums:
    squares = (x32 * x32).reshape(*x.shape[: -scale.ndim], -1)
    mean = products.row_sums(squares, True) / scale.size
    mean = jnp.expand_dims(mean, axes)
  else:
    mean = jnp.mean(x32 * x32, axis=axes, keepdims=True)
  inverse = lax.rsqrt(mean + cfg.norm_eps)
  scale32 = jnp.broadcast_to(scale.astype(jnp.float32), x.shape)
  if cfg.norm_offset:
    scale32 = 1.0 + scale32
  return (x32 * inverse * scale32).astype(x.dtype)


def project(layer: dict, cfg: Any, name: str, x: Array) -> Array:
  """x W, plus the adapter's (x a) b * (alpha / rank) if there is one."""
  inputs = lora.num_inputs(name)
  y = products.dense(x, layer['base'][name], inputs)
  if name in layer['lora']:
    adapter = layer['lora'][name]
    low = products.dense(x, adapter['a'], inputs)
    y = y + products.dense(low, adapter['b'], 1) * (
      cfg.lora_alpha / cfg.lora_rank
    )
  return y


def qkv(layer, cfg, x, tables) -> tuple[Array, Array, Array]:
  """Queries [..., J, H/J, K], scaled; keys and values [..., J, K]."""
  base = layer['base']
  h = norm(x, base['attn_norm'], cfg)
  q, k, v = (project(layer, cfg, name, h) for name in ('wq', 'wk', 'wv'))
  if cfg.qkv_bias:
    q, k, v = (
      mixed_precision.add_bias(y, base[name])
      for y, name in ((q, 'bq'), (k, 'bk'), (v, 'bv'))
    )
  if cfg.qk_norm:
    q = norm(q, base['q_norm'], cfg)
    k = norm(k, base['k_norm'], cfg)
  tables = rope.of_layer(tables, layer.get('window'))
  scale = (cfg.query_pre_attn_scalar or cfg.head_size) ** -0.5
  q = rope.rotate(q, tables) * scale
  shape = (*x.shape[:-1], cfg.num_kv_heads, -1, cfg.head_size)
  return q.reshape(shape), rope.rotate(k, tables), v


def limits(cfg, layer) -> attention.Limits:
  """The cap and the window of a layer's attention scores, and their sums."""
  return attention.Limits(
    cap=cfg.attention_cap,
    window=layer.get('window'),
    steady_sums=cfg.platform.steady_sums,
  )


def causal(cfg, layer) -> tuple[attention_kernels.Causal, Array | None]:
  """The mask of kernels, and whether the layer has its window, if some have."""
  mask = attention_kernels.Causal(window=cfg.window, cap=cfg.attention_cap)
  if cfg.window is None or len(set(cfg.windowed)) == cfg.num_layers:
    return mask, None
  return mask, layer['window'] < rope.EVERYTHING


def finish_layer(layer, cfg, x, attended) -> Array:
  """Adds the attention's output and the MLP to the residual stream."""
  return add_mlp(layer, cfg, add_attention(layer, cfg, x, attended))


def add_attention(layer, cfg, x, attended) -> Array:
  """The first half of finish_layer."""
  base = layer['base']
  attended = attended.reshape(*x.shape[:-1], cfg.num_heads, cfg.head_size)
  attended = project(layer, cfg, 'wo', attended)
  if cfg.post_norms:
    attended = norm(attended, base['attn_post_norm'], cfg)
  return x + attended


def add_mlp(layer, cfg, x) -> Array:
  """The second half."""
  base = layer['base']
  y = _mlp(layer, cfg, norm(x, base['mlp_norm'], cfg))
  return x + (norm(y, base['mlp_post_norm'], cfg) if cfg.post_norms else y)


def routing(layer, cfg, x) -> Array:
  """experts.routing of the states that add_mlp gets."""
  base = layer['base']
  return experts.routing(cfg, norm(x, base['mlp_norm'], cfg), base['router'])


def _mlp(layer, cfg, h) -> Array:
  activation = ACTIVATIONS[cfg.activation]
  if cfg.num_experts:
    return experts.feed_forward(layer, cfg, h, activation)
  if 'mlp' in layer:
    return _transposed_mlp(layer['mlp'], h, activation)
  gate = activation(project(layer, cfg, 'w_gate', h))
  up = project(layer, cfg, 'w_up', h)
  return project(layer, cfg, 'w_down', gate * up)


def _transposed_mlp(
  weights: tuple[Array, Array, Array], h_BD: Array, activation: Any
) -> Array:
  """The MLP of few rows, in [F, B], by weights [outputs, inputs].

  Where XLA copies the right factor of a product, it copies the states here, not
  the weights: 32 rows take two thirds of the time.
  """
  gate, up, down = weights
  last = (((1,), (1,)), ((), ()))
  gate_FB = activation(lax.dot_general(gate, h_BD, last))
  y_DB = down @ (gate_FB * lax.dot_general(up, h_BD, last))
  # Without the barrier XLA would merge the transposition into the product.
  return lax.optimization_barrier(y_DB).T


def stacked_layers(params, cfg) -> dict[str, Any]:
  """Weights and adapters of all layers, stacked along the first axis.

  If some layers have a window, every layer has one, which may be endless.
  """
  adapters = params['lora']['layers'] if 'lora' in params else {}
  stacked = {'base': params['model']['layers'], 'lora': adapters}
  if cfg.window is not None:
    window_L = np.full(cfg.num_layers, rope.EVERYTHING, np.int32)
    window_L[list(cfg.windowed)] = cfg.window
    stacked['window'] = jnp.asarray(window_L)
  return stacked


def embed(params, cfg, token) -> Array:
  """The input states [..., D] in the compute dtype."""
  table = params['model']['embed']
  x = mixed_precision.lookup(table, token, cfg.compute_dtype)
  # The factor is rounded to the compute dtype, as it was in pretraining.
  return (
    x * jnp.asarray(cfg.width**0.5, x.dtype) if cfg.scaled_embeddings else x
  )
