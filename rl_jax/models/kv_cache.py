"""Keys and values of prompts, stored once per group, and of responses."""

from flax import struct
import jax.numpy as jnp

from rl_jax.types import Array


@struct.dataclass(kw_only=True)
class PromptCache:
  """What prefill leaves behind; the G samples of a group share it."""

  k_LNPJK: Array
  v_LNPJK: Array
  mask_NP: Array  # float32, 1 on real tokens


@struct.dataclass(kw_only=True)
class Cache:
  """The shared prompt part and the rows' own part, written at each step."""

  prompt: PromptCache
  k_LBTJK: Array
  v_LBTJK: Array


def extend(prompt: PromptCache, group_size: int, max_tokens: int) -> Cache:
  """Adds room for max_tokens tokens of group_size rows per prompt."""
  layers, groups, _, kv_heads, head_size = prompt.k_LNPJK.shape
  shape = (layers, groups * group_size, max_tokens, kv_heads, head_size)
  zeros = jnp.zeros(shape, prompt.k_LNPJK.dtype)
  return Cache(prompt=prompt, k_LBTJK=zeros, v_LBTJK=zeros)
