"""Decoding one token at a time, from the cache that prefill fills.

One body computes a layer, and `through_layers` repeats it in one of two ways,
see `scans_layers`.
"""

from collections.abc import Callable
import functools
import pathlib
from typing import Any, NamedTuple, TypeVar

import jax
from jax import lax
import jax.numpy as jnp

from rl_jax.models import (
  attention,
  attention_kernels,
  block_pool,
  decode_attention,
  experts,
  kv_cache,
  layers,
  rope,
)
from rl_jax.runtime import layout
from rl_jax.runtime.platform import Platform
from rl_jax.types import Array

_Cache = TypeVar('_Cache', bound=kv_cache.Cache)


def prefill(
  params: dict[str, Any],
  cfg: Any,
  prompt_NP: Array,
  prompt_mask_NP: Array,
) -> tuple[Array, kv_cache.PromptCache]:
  """The state [N, D] that predicts the first response token, and the cache."""
  tables = rope.tables(cfg, rope.prompt_positions(prompt_mask_NP))

  def body(x, layer):
    q, k, v = layers.qkv(layer, cfg, x, tables)
    if cfg.attention == 'plain':
      limits = layers.limits(cfg, layer)
      attended = attention.attend_prompt(q, k, v, prompt_mask_NP, limits)
    else:
      attended = attention_kernels.attend(
        cfg.attention,
        (q, k, v),
        None,
        prompt_mask_NP,
        *layers.causal(cfg, layer),
      )
    x = layers.finish_layer(layer, cfg, x, attended)
    x = layout.constrain(x, 'sampled_rows', None, None)
    return x, attention.cached(k, v)

  x = layers.embed(params, cfg, prompt_NP)
  x = layout.constrain(x, 'sampled_rows', None, None)
  x, (k, v) = lax.scan(body, x, layers.stacked_layers(params, cfg))
  hidden = layers.norm(x[:, -1], params['model']['final_norm'], cfg)
  if not scans_layers(cfg):
    keys, values = zip(*_by_layer((k, v), cfg.num_layers), strict=True)
  else:
    keys, values = (jnp.swapaxes(k, 0, 1),), (jnp.swapaxes(v, 0, 1),)
  return hidden, kv_cache.PromptCache(
    k_NJKP=keys, v_NJPK=values, mask_NP=prompt_mask_NP
  )


def scans_layers(cfg: Any) -> bool:
  """Returns whether a decoding program holds one layer, in a scan over all.

  On TPU: XLA reads a slice of stacked weights and caches in place there, and a
  program that holds 24 layers takes minutes to compile. XLA copies the slices
  on CPU, where a scan decodes 20% to 30% slower, and on GPU, where they would
  be three times the bytes of a step; there programs hold every layer. But on
  GPU kernels read the cache and experts in place, which are nearly all bytes of
  a model with experts, and its layers take longest to compile.
  """
  if cfg.platform.name == 'tpu':
    return True
  return experts.in_place(cfg) and decode_attention.runs(cfg)


def decoding_weights(params: dict[str, Any], cfg: Any) -> dict[str, Any]:
  """Parameters for decode_step: one tree for each layer, or all stacked.

  Slicing happens before the loop over tokens: inside, each iteration would copy
  the slices again. See scans_layers.
  """
  stacked = layers.stacked_layers(params, cfg)
  rest = {k: x for k, x in params['model'].items() if k != 'layers'}
  if scans_layers(cfg):
    return {'model': rest, 'layers': stacked}
  by_layer = _by_layer(stacked, cfg.num_layers)
  return {
    'model': rest,
    'layers': tuple(_for_decoding(layer, cfg) for layer in by_layer),
  }


def _by_layer(stacked: Any, num_layers: int) -> list[Any]:
  """One tree per layer.

  XLA compiles identical code once, here one slice for all layers, if the index
  of the layer is not a constant. The sort prevents constant folding.
  """
  numbers = lax.sort([jnp.full(2, i) for i in range(num_layers)])

  def layer(number):
    take = functools.partial(
      lax.dynamic_index_in_dim, index=number, keepdims=False
    )
    return jax.tree.map(take, stacked)

  return [layer(number_2[0]) for number_2 in numbers]


def _for_decoding(layer: dict, cfg: Any) -> dict:
  """The layer, its MLP transposed if that is faster and has no adapters."""
  names = ('w_gate', 'w_up', 'w_down')
  if cfg.num_experts or not copies_right_factors(cfg.platform):
    return layer
  if any(name in layer['lora'] for name in names):
    return layer
  base = dict(layer['base'])
  mlp = tuple(base.pop(name).astype(cfg.compute_dtype).T for name in names)
  return {**layer, 'base': base, 'mlp': mlp}


def copies_right_factors(platform: Platform) -> bool:
  """True if XLA copies the right factor of a product into another layout.

  Its CPU kernels do, except those for AVX-512, which read it in place. Without
  transposed weights the MLP of 4 to 128 rows takes 0.8 to 1.05 of the time with
  AVX-512, and 1.5 to 0.95 of the time with AVX2.
  """
  return platform.is_cpu and not _has_avx512()


@functools.cache
def _has_avx512() -> bool:
  described = pathlib.Path('/proc/cpuinfo')
  return described.exists() and 'avx512f' in described.read_text()


def decode_step(
  params: dict[str, Any],
  cfg: Any,
  token_B: Array,
  step_B: Array,
  clock: Array,
  cache: kv_cache.Cache,
  places: tuple[Array, Array] | None = None,
  inputs_BD: Array | None = None,
) -> tuple[Array, kv_cache.Cache]:
  """Feeds response tokens `step`; states [B, D] predict tokens step + 1.

  params: from `decoding_weights`. clock: number of steps before this one; each
  step feeds one token per row. places: see attend_response. inputs: added to
  the embeddings of the tokens, see transformer.Tokens.
  """
  prompt = cache.prompt
  start_N = prompt.mask_NP.astype(jnp.int32).sum(axis=1)
  rows = token_B.shape[0] if places is None else places[1].shape[0]
  start_B = jnp.repeat(start_N, rows // start_N.shape[0])
  if places is not None:
    start_B = start_B[places[0]]
  # From a table: XLA on CPU would compute a sine for each channel of all heads.
  # Rows that have ended may be beyond the last position.
  behind_B = cache.behind_prompt(step_B)

  def look_up(table):
    return table.at[start_B + behind_B].get(mode='clip')

  tables = jax.tree.map(look_up, cache.rotations)
  blocks = cache.step(clock, step_B)
  pooled = isinstance(cache, block_pool.BlockPool)
  kernel = not pooled and decode_attention.runs(cfg)
  windows = cfg.window is not None and not pooled and not kernel
  ages = cache.ages(clock, step_B) if windows else None
  seen = cache.seen(clock, step_B) if kernel else None
  layer_step = _pooled_layer_step if pooled else _layer_step
  fed = _Fed(tables, blocks, places, behind_B, ages, seen)

  def one(x, layer, shared, own, number):
    if kernel and number is not None:  # which reads its layer in place
      shared = (*prompt.k_NJKP, *prompt.v_NJPK, prompt.mask_NP)
    return layer_step(layer, cfg, x, shared, own, number, fed)

  x = layers.embed(params, cfg, token_B)
  if inputs_BD is not None:
    x += inputs_BD.astype(x.dtype)
  x, cache = through_layers(cfg, one, x, params['layers'], cache)
  return layers.norm(x, params['model']['final_norm'], cfg), cache


def through_layers(
  cfg: Any, one: Callable, x: Array, weights: Any, cache: _Cache
) -> tuple[Array, _Cache]:
  """Returns the states after all layers, and the cache that they have written.

  Args:
    one: (states, weights of a layer, (keys, values, mask) of the prompts,
      (keys, values) of the rows, number) -> (states, keys, values). The number
      is None where the rows' keys and values are of that layer only, else the
      place of the layer in them.
    weights: `layers` of decoding_weights.
  """
  prompt = cache.prompt
  if isinstance(weights, tuple):
    keys, values = [], []
    for index, layer in enumerate(weights):
      shared = (prompt.k_NJKP[index], prompt.v_NJPK[index], prompt.mask_NP)
      own = (cache.k_BJKT[index], cache.v_BJTK[index])
      x, k, v = one(x, layer, shared, own, None)
      keys.append(k)
      values.append(v)
    return x, cache.replace(k_BJKT=tuple(keys), v_BJTK=tuple(values))

  def body(carried, scanned):
    x, *own = carried
    number, layer, k_NJKP, v_NJPK = scanned
    layer = experts.joined(layer, whole, number)
    return one(x, layer, (k_NJKP, v_NJPK, prompt.mask_NP), own, number), None

  (keys,), (values,) = cache.k_BJKT, cache.v_BJTK
  shared = (jnp.swapaxes(y, 0, 1) for y in (*prompt.k_NJKP, *prompt.v_NJPK))
  sliced, whole = experts.apart(cfg, weights)
  (x, keys, values), _ = lax.scan(
    body, (x, keys, values), (jnp.arange(cfg.num_layers), sliced, *shared)
  )
  return x, cache.replace(k_BJKT=(keys,), v_BJTK=(values,))


class _Fed(NamedTuple):
  """The inputs of every layer for the tokens that a step feeds."""

  tables: Any  # rotations of their positions
  steps: Any  # of Cache.step
  places: Any  # see attend_response
  after_B: Array  # tokens of the row's response that come before
  ages: Any = None  # of Cache.ages, with windows
  seen: Any = None  # of Cache.seen, where a kernel attends


@functools.partial(jax.jit, static_argnames='cfg')  # traced once for all layers
def _layer_step(layer, cfg, x, shared, own, number, fed):
  """(states after the layer, its keys, its values); writes one column."""
  q, k, v = layers.qkv(layer, cfg, x, fed.tables)
  limits, blocks = layers.limits(cfg, layer), fed.steps
  if fed.ages is not None:
    blocks = [
      (column, here, seen_B1T & limits.near(age))
      for (column, here, seen_B1T), age in zip(blocks, fed.ages, strict=True)
    ]
  keys, values, read = [], [], []
  for k_BJKT, v_BJTK, (column, here, seen_B1T) in zip(
    *own, blocks, strict=True
  ):
    keys.append(kv_cache.put(k_BJKT, k, column, here, 3, number))
    values.append(kv_cache.put(v_BJTK, v, column, here, 2, number))
    if fed.seen is None:
      read.append((*_layer_of(keys[-1], values[-1], number), seen_B1T))
  if fed.seen is None:
    attended = attention.attend_response(
      q[:, None],
      shared,
      read[0],
      fed.places,
      later=read[1:],
      limits=limits,
      step=fed.after_B[:, None],
    )
  else:
    attended = decode_attention.attend(
      cfg,
      q,
      shared,
      (keys[0], values[0]),
      number,
      fed.places,
      limits,
      (fed.seen, fed.after_B),
    )
  x = layers.finish_layer(layer, cfg, x, attended)
  return x, tuple(keys), tuple(values)


def _layer_of(keys, values, number):
  return kv_cache.layer_of(keys, number), kv_cache.layer_of(values, number)


@functools.partial(jax.jit, static_argnames='cfg')  # traced once for all layers
def _pooled_layer_step(layer, cfg, x, shared, own, number, fed):
  """The same with a BlockPool; fed.steps is its PoolStep."""
  q, k, v = layers.qkv(layer, cfg, x, fed.tables)
  limits, at = layers.limits(cfg, layer), fed.steps
  (keys,), (values,) = own
  keys = block_pool.put(keys, k, at, 3, number)
  values = block_pool.put(values, v, at, 2, number)
  seen_MC = at.seen_MC & limits.near(at.age_MC)
  now = (k[..., None], v[:, :, None], jnp.ones((1, 1), bool))
  attended = attention.attend_response(
    q[:, None],
    shared,
    now,
    fed.places,
    limits=limits,
    step=fed.after_B[:, None],
    pool=(*_layer_of(keys, values, number), at.owner_M, seen_MC),
  )
  return layers.finish_layer(layer, cfg, x, attended), (keys,), (values,)
