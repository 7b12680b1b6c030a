"""Keys and values of prompts, stored once per group, and of responses."""

from flax import struct
import jax.numpy as jnp

from rl_jax.types import Array


@struct.dataclass(kw_only=True)
class PromptCache:
  """What prefill leaves behind; the G samples of a group share it."""

  k_LNJKP: Array
  v_LNJPK: Array
  mask_NP: Array  # float32, 1 on real tokens


@struct.dataclass(kw_only=True)
class Cache:
  """The shared prompt part and the rows' own part, written at each step."""

  prompt: PromptCache
  k_LBJKT: Array
  v_LBJTK: Array


def extend(prompt: PromptCache, group_size: int, max_tokens: int) -> Cache:
  """Adds room for max_tokens tokens of group_size rows per prompt."""
  layers, groups, kv_heads, head_size, _ = prompt.k_LNJKP.shape
  rows, dtype = groups * group_size, prompt.k_LNJKP.dtype
  k_shape = (rows, kv_heads, head_size, max_tokens)
  v_shape = (rows, kv_heads, max_tokens, head_size)
  return Cache(
    prompt=prompt,
    k_LBJKT=jnp.zeros((layers, *k_shape), dtype),
    v_LBJTK=jnp.zeros((layers, *v_shape), dtype),
  )
