"""Keys and values of prompts, stored once per group, and of responses.

Every layer has arrays of its own: a step of decoding then writes its column in
place and reads the rest where it lies. A slice of one stacked array would be
copied whole at every layer and step.
"""

from flax import struct
import jax
import jax.numpy as jnp

from rl_jax.types import Array


@struct.dataclass(kw_only=True)
class PromptCache:
  """What prefill leaves behind; the G samples of a group share it."""

  k_NJKP: tuple[Array, ...]  # one a layer
  v_NJPK: tuple[Array, ...]
  mask_NP: Array  # float32, 1 on real tokens

  @property
  def num_prompts(self) -> int:
    """N."""
    return self.mask_NP.shape[0]

  def take(self, group_W: Array) -> 'PromptCache':
    """The prompts of some groups."""
    return jax.tree.map(lambda x: x[group_W], self)


@struct.dataclass(kw_only=True)
class Cache:
  """The shared prompt part and the rows' own part, written at each step."""

  prompt: PromptCache
  k_BJKT: tuple[Array, ...]
  v_BJTK: tuple[Array, ...]

  def take(self, slot_W: Array) -> 'Cache':
    """The part of some rows, with the prompts of all."""
    return self.replace(
      k_BJKT=tuple(x[slot_W] for x in self.k_BJKT),
      v_BJTK=tuple(x[slot_W] for x in self.v_BJTK),
    )


def extend(prompt: PromptCache, rows: int, max_tokens: int) -> Cache:
  """Adds room for max_tokens tokens of so many rows."""
  _, kv_heads, head_size, _ = prompt.k_NJKP[0].shape
  dtype = prompt.k_NJKP[0].dtype

  def layers(*shape):
    return tuple(jnp.zeros((rows, *shape), dtype) for _ in prompt.k_NJKP)

  return Cache(
    prompt=prompt,
    k_BJKT=layers(kv_heads, head_size, max_tokens),
    v_BJTK=layers(kv_heads, max_tokens, head_size),
  )
