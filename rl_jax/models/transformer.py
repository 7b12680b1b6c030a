"""A dense decoder: Llama 3, SmolLM2, Qwen2/2.5 and Qwen3 by switches.

Functions of (params, cfg, arrays). The prompt of a group is encoded once and
its G responses attend to the same keys and values, both in training (forward)
and in sampling (prefill, decode_step): one forward, so that the log-probs of
the sampler and of the trainer agree.
"""

import dataclasses
import math
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from rl_jax import sharding
from rl_jax.models import (
  attention,
  attention_kernels,
  heads,
  kv_cache,
  lora,
  mixed_precision,
  rope,
  spec,
)
from rl_jax.types import Array, check_choice, check_range

DTYPES = ('float32', 'bfloat16', 'float16')


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelConfig:
  """Everything that fixes the program; JSON-friendly and hashable."""

  vocab_size: int
  num_layers: int
  width: int
  num_heads: int
  num_kv_heads: int
  head_size: int
  mlp_size: int
  rope_theta: float = 10000.0
  rope_scaling: rope.RopeScaling | None = None
  norm_eps: float = 1e-6
  tied_embeddings: bool = True
  qkv_bias: bool = False
  qk_norm: bool = False
  max_positions: int = 2048
  param_dtype: str = 'float32'
  compute_dtype: str = 'float32'
  attention: str = 'plain'  # or a kernel, of all but decode_step
  remat: bool = False  # keep only the layers' inputs for the backward pass
  value_head: bool = False
  lora_rank: int = 0  # 0: no adapters
  lora_alpha: float = 16.0
  lora_targets: tuple[str, ...] = lora.TARGETS

  def __post_init__(self):
    for field in ('vocab_size', 'num_layers', 'width', 'num_heads'):
      check_range(self, field, 1)
    for field in ('num_kv_heads', 'mlp_size', 'max_positions'):
      check_range(self, field, 1)
    check_range(self, 'head_size', 2)
    check_range(self, 'lora_rank', 0)
    check_range(self, 'norm_eps', 0.0, open_low=True)
    check_choice(self, 'param_dtype', DTYPES)
    check_choice(self, 'compute_dtype', DTYPES)
    kernels = ('plain', *attention_kernels.KERNELS)
    check_choice(self, 'attention', kernels)
    if self.num_heads % self.num_kv_heads:
      raise ValueError(
        f'ModelConfig.num_heads = {self.num_heads} is not a multiple of '
        f'num_kv_heads = {self.num_kv_heads}'
      )
    if self.head_size % 2:
      raise ValueError(f'ModelConfig.head_size = {self.head_size} is odd')
    unknown = set(self.lora_targets) - set(lora.TARGETS)
    if unknown:
      raise ValueError(
        f'ModelConfig.lora_targets: {sorted(unknown)} are none of '
        + ', '.join(lora.TARGETS)
      )


def specs(cfg: ModelConfig) -> dict[str, Any]:
  """The tree of ParamSpec: model and, if switched on, lora and value_head."""
  L, D, F = cfg.num_layers, cfg.width, cfg.mlp_size
  H, J, K = cfg.num_heads, cfg.num_kv_heads, cfg.head_size

  def param(shape, axes, init):
    return spec.ParamSpec(shape, cfg.param_dtype, axes, init)

  def stacked(shape, axes, init):
    return param((L, *shape), ('layers', *axes), init)

  # Outputs that are added to the residual stream shrink with its depth.
  residual = (2 * L) ** -0.5
  width, heads_, kv = 'width', ('heads', 'head_size'), ('kv_heads', 'head_size')
  layers = {
    'attn_norm': stacked((D,), (None,), spec.ONES),
    'wq': stacked((D, H, K), (width, *heads_), D**-0.5),
    'wk': stacked((D, J, K), (width, *kv), D**-0.5),
    'wv': stacked((D, J, K), (width, *kv), D**-0.5),
    'wo': stacked((H, K, D), (*heads_, width), residual * (H * K) ** -0.5),
    'mlp_norm': stacked((D,), (None,), spec.ONES),
    'w_gate': stacked((D, F), (width, 'mlp'), D**-0.5),
    'w_up': stacked((D, F), (width, 'mlp'), D**-0.5),
    'w_down': stacked((F, D), ('mlp', width), residual * F**-0.5),
  }
  if cfg.qkv_bias:
    layers['bq'] = stacked((H, K), heads_, spec.ZEROS)
    layers['bk'] = stacked((J, K), kv, spec.ZEROS)
    layers['bv'] = stacked((J, K), kv, spec.ZEROS)
  if cfg.qk_norm:
    layers['q_norm'] = stacked((K,), (None,), spec.ONES)
    layers['k_norm'] = stacked((K,), (None,), spec.ONES)
  vocab = cfg.vocab_size
  model = {
    'embed': param((vocab, D), ('vocab', width), 0.02),
    'layers': layers,
    'final_norm': param((D,), (None,), spec.ONES),
  }
  if not cfg.tied_embeddings:
    model['lm_head'] = param((D, vocab), (width, 'vocab'), 0.02)
  tree = {'model': model}
  if cfg.lora_rank:
    tree['lora'] = lora.specs(layers, cfg.lora_targets, cfg.lora_rank)
  if cfg.value_head:
    tree['value_head'] = heads.value_specs(D)
  return tree


def _norm(x: Array, scale: Array, eps: float) -> Array:
  """x / sqrt(mean(x^2) + eps) * scale over the last axis, in float32."""
  x32 = x.astype(jnp.float32)
  inverse = lax.rsqrt(jnp.mean(x32 * x32, axis=-1, keepdims=True) + eps)
  scale32 = jnp.broadcast_to(scale.astype(jnp.float32), x.shape)
  return (x32 * inverse * scale32).astype(x.dtype)


def _dense(x: Array, weight: Array, inputs: int) -> Array:
  """Contracts the last dimensions of x with the first ones of weight.

  As one product of two matrices: XLA on CPU runs the transposed products of
  the backward pass at less than half the speed on more dimensions.
  """
  lead, tail = x.shape[: x.ndim - inputs], weight.shape[inputs:]
  size = math.prod(weight.shape[:inputs])
  y = x.reshape(-1, size) @ weight.astype(x.dtype).reshape(size, -1)
  return y.reshape(*lead, *tail)


def _project(layer: dict, cfg: ModelConfig, name: str, x: Array) -> Array:
  """x W, plus the adapter's (x a) b * (alpha / rank) if there is one."""
  inputs = lora.num_inputs(name)
  y = _dense(x, layer['base'][name], inputs)
  if name in layer['lora']:
    adapter = layer['lora'][name]
    low = _dense(x, adapter['a'], inputs)
    y = y + _dense(low, adapter['b'], 1) * (cfg.lora_alpha / cfg.lora_rank)
  return y


def _qkv(layer, cfg, x, tables) -> tuple[Array, Array, Array]:
  """Queries [..., J, H/J, K], scaled; keys and values [..., J, K]."""
  base = layer['base']
  h = _norm(x, base['attn_norm'], cfg.norm_eps)
  q, k, v = (_project(layer, cfg, name, h) for name in ('wq', 'wk', 'wv'))
  if cfg.qkv_bias:
    q, k, v = (
      mixed_precision.add_bias(y, base[name])
      for y, name in ((q, 'bq'), (k, 'bk'), (v, 'bv'))
    )
  if cfg.qk_norm:
    q = _norm(q, base['q_norm'], cfg.norm_eps)
    k = _norm(k, base['k_norm'], cfg.norm_eps)
  q = rope.rotate(q, tables) * cfg.head_size**-0.5
  shape = (*x.shape[:-1], cfg.num_kv_heads, -1, cfg.head_size)
  return q.reshape(shape), rope.rotate(k, tables), v


def _finish_layer(layer, cfg, x, attended) -> Array:
  """Adds the attention's output and the MLP to the residual stream."""
  attended = attended.reshape(*x.shape[:-1], cfg.num_heads, cfg.head_size)
  x = x + _project(layer, cfg, 'wo', attended)
  h = _norm(x, layer['base']['mlp_norm'], cfg.norm_eps)
  gate = jax.nn.silu(_project(layer, cfg, 'w_gate', h))
  up = _project(layer, cfg, 'w_up', h)
  return x + _project(layer, cfg, 'w_down', gate * up)


def _stacked_layers(params) -> dict[str, Any]:
  adapters = params['lora']['layers'] if 'lora' in params else {}
  return {'base': params['model']['layers'], 'lora': adapters}


def _embed(params, cfg, token) -> Array:
  table = params['model']['embed']
  return mixed_precision.lookup(table, token, cfg.compute_dtype)


def forward(
  params: dict[str, Any],
  cfg: ModelConfig,
  prompt_NP: Array,
  prompt_mask_NP: Array,
  response_BT: Array,
  response_mask_BT: Array,
) -> Array:
  """Hidden states [B, T, D]; that at t predicts response token t.

  The tokens of a group are one sequence, its prompt and then its G responses,
  for everything but attention: no prompt is encoded twice. States at padding
  are 0.
  """
  (N, P), (B, T) = prompt_NP.shape, response_BT.shape
  if sharding.parts(T, 'tokens') > 1:
    from rl_jax.models import sequence_parallel  # made of the layers below

    hidden = sequence_parallel.forward(
      params, cfg, prompt_NP, prompt_mask_NP, response_BT
    )
    return jnp.where(response_mask_BT[..., None] > 0, hidden, 0)
  G, S, D = B // N, T - 1, cfg.width  # the last token predicts nothing
  # Splits an axis of P + G * S tokens into its two parts.
  parts = lambda x: (x[:, :P], x[:, P:].reshape(N, G, S, *x.shape[2:]))
  token = jnp.concatenate(
    [prompt_NP, response_BT[:, :S].reshape(N, G * S)], axis=1
  )
  start_N = prompt_mask_NP.astype(jnp.int32).sum(axis=1)
  step = jnp.tile(jnp.arange(S, dtype=jnp.int32), G)
  position = jnp.concatenate(
    [rope.prompt_positions(prompt_mask_NP), start_N[:, None] + step[None]],
    axis=1,
  )
  tables = rope.tables(cfg, position)
  causal_ST = jnp.tril(jnp.ones((S, S), bool))

  def body(x, layer):
    (qp, q), (kp, k), (vp, v) = map(parts, _qkv(layer, cfg, x, tables))
    if cfg.attention != 'plain':
      attended = attention_kernels.attend(
        cfg.attention, (qp, kp, vp), (q, k, v), prompt_mask_NP
      )
    else:
      attended = attention.attend_prompt(qp, kp, vp, prompt_mask_NP)
    if S and cfg.attention == 'plain':
      k, v = (y.reshape(B, S, *y.shape[3:]) for y in (k, v))
      own = attention.attend_response(
        q,
        (*attention.cached(kp, vp), prompt_mask_NP),
        (*attention.cached(k, v), causal_ST),
      )
      own = own.reshape(N, G * S, *attended.shape[2:])
      attended = jnp.concatenate([attended, own], axis=1)
    x = _finish_layer(layer, cfg, x, attended)
    return sharding.constrain(x, 'rows', None, None), None

  # Without remat the products with weights are kept. The rest is recomputed:
  # cheaper on CPU than storing it, and there is less to store.
  policy = attention_kernels.saveable(
    jax.checkpoint_policies.dots_with_no_batch_dims_saveable
  )
  policy = None if cfg.remat else policy
  x = sharding.constrain(_embed(params, cfg, token), 'rows', None, None)
  x, _ = lax.scan(
    jax.checkpoint(body, policy=policy), x, _stacked_layers(params)
  )
  x_NPD, x_NGSD = parts(_norm(x, params['model']['final_norm'], cfg.norm_eps))
  first = jnp.broadcast_to(x_NPD[:, None, -1:], (N, G, 1, D))
  hidden = jnp.concatenate([first, x_NGSD], axis=2).reshape(B, T, D)
  hidden = jnp.where(response_mask_BT[..., None] > 0, hidden, 0)
  return sharding.constrain(hidden, 'rows', None, None)


def prefill(
  params: dict[str, Any],
  cfg: ModelConfig,
  prompt_NP: Array,
  prompt_mask_NP: Array,
) -> tuple[Array, kv_cache.PromptCache]:
  """The state [N, D] that predicts the first response token, and the cache."""
  tables = rope.tables(cfg, rope.prompt_positions(prompt_mask_NP))

  def body(x, layer):
    q, k, v = _qkv(layer, cfg, x, tables)
    if cfg.attention == 'plain':
      attended = attention.attend_prompt(q, k, v, prompt_mask_NP)
    else:
      attended = attention_kernels.attend(
        cfg.attention, (q, k, v), None, prompt_mask_NP
      )
    x = _finish_layer(layer, cfg, x, attended)
    return sharding.constrain(x, 'rows', None, None), attention.cached(k, v)

  x = sharding.constrain(_embed(params, cfg, prompt_NP), 'rows', None, None)
  x, (k, v) = lax.scan(body, x, _stacked_layers(params))
  hidden = _norm(x[:, -1], params['model']['final_norm'], cfg.norm_eps)
  return hidden, kv_cache.PromptCache(
    k_NJKP=tuple(k), v_NJPK=tuple(v), mask_NP=prompt_mask_NP
  )


def unstacked(params: dict[str, Any], cfg: ModelConfig) -> dict[str, Any]:
  """Parameters with one tree per layer, for decode_step.

  Sliced before the loop over tokens: its body would copy the slices each time.
  """
  layers = _stacked_layers(params)
  return {
    'model': params['model'],
    'layers': tuple(
      jax.tree.map(lambda x, i=i: x[i], layers) for i in range(cfg.num_layers)
    ),
  }


def decode_step(
  params: dict[str, Any],
  cfg: ModelConfig,
  token_B: Array,
  step: Array,
  cache: kv_cache.Cache,
) -> tuple[Array, kv_cache.Cache]:
  """Feeds response token `step`; the state [B, D] predicts token step + 1.

  params: of `unstacked`.
  """
  prompt = cache.prompt
  N, G = prompt.mask_NP.shape[0], token_B.shape[0] // prompt.mask_NP.shape[0]
  start_N = prompt.mask_NP.astype(jnp.int32).sum(axis=1)
  tables = rope.tables(cfg, jnp.repeat(start_N, G) + step)
  mask_1T = (jnp.arange(cache.k_BJKT[0].shape[-1]) <= step)[None]
  x = _embed(params, cfg, token_B)
  keys, values = [], []
  for index, layer in enumerate(params['layers']):
    q, k, v = _qkv(layer, cfg, x, tables)
    q = q.reshape(N, G, 1, *q.shape[1:])
    start = (0, 0, 0, step)
    k = lax.dynamic_update_slice(cache.k_BJKT[index], k[..., None], start)
    start = (0, 0, step, 0)
    v = lax.dynamic_update_slice(cache.v_BJTK[index], v[:, :, None], start)
    shared = (prompt.k_NJKP[index], prompt.v_NJPK[index], prompt.mask_NP)
    attended = attention.attend_response(q, shared, (k, v, mask_1T))
    x = _finish_layer(layer, cfg, x, attended)
    keys.append(k)
    values.append(v)
  hidden = _norm(x, params['model']['final_norm'], cfg.norm_eps)
  return hidden, cache.replace(k_BJKT=tuple(keys), v_BJTK=tuple(values))
