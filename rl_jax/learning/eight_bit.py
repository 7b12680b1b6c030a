"""Adam whose moments take 8 bits each, with one scale for a block of numbers.

  m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2    in float32, from the codes
  update = (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
  code of v    0, or k in 1..255:    v = scale * 10^(6 (k - 255) / 254)
  code of m    0, or k in +-1..127:  m = +-scale * 10^(4 (|k| - 127) / 126)
  scale        the largest magnitude of the block, float32

A number between two levels is rounded up with the probability that makes its
mean exact, by counters (step, leaf, place). With the nearest level a second
moment would never move: of b2 = 0.999 it changes by less than 0.1% a step, and
levels are 5.6% apart (in bfloat16, 0.8%). Below the last level v is rounded up
to it, so that no update explodes, and m to it or to 0.

Source: "8-bit Optimizers via Block-wise Quantization" (2110.02861), with levels
at equal ratios and stochastic rounding in place of its dynamic tree and the
nearest level; no code was compared.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from rl_jax.types import Array

MOST = 64  # numbers of a block, where the size of the last axis can be halved
M_DECADES, V_DECADES = 4.0, 6.0
M_LEVELS, V_LEVELS = 127, 255


class Moments(NamedTuple):
  """State: codes have the shapes of parameters, scales [..., blocks]."""

  count: Array
  m_code: Any  # int8
  m_scale: Any
  v_code: Any  # uint8
  v_scale: Any


def scale_by_adam(
  b1: float, b2: float, eps: float
) -> optax.GradientTransformation:
  """optax.scale_by_adam, with its moments stored in 8 bits."""

  def init(params: Any):
    def code(dtype: Any):
      return jax.tree.map(lambda p: jnp.zeros(p.shape, dtype), params)

    def scale():
      return jax.tree.map(
        lambda p: jnp.zeros(_blocks(p)[:-1], jnp.float32), params
      )

    return Moments(
      jnp.zeros((), jnp.int32),
      code(jnp.int8),
      scale(),
      code(jnp.uint8),
      scale(),
    )

  def update(updates: Any, state: Any, params: Any = None):
    del params
    count = state.count + 1
    key = jax.random.fold_in(jax.random.key(0), count)
    leaves, tree = jax.tree.flatten(updates)
    codes = [tree.flatten_up_to(part) for part in state[1:]]
    found = []
    for number, (g, *old) in enumerate(zip(leaves, *codes, strict=True)):
      bits = jax.random.bits(jax.random.fold_in(key, number), g.shape)
      found.append(_one(g.astype(jnp.float32), old, bits))
    m, v, *codes = (tree.unflatten(part) for part in zip(*found, strict=True))
    # Cast, or an integer power would be computed by repeated products.
    t = count.astype(jnp.float32)
    steps = jax.tree.map(
      lambda m, v: m / (1 - b1**t) / (jnp.sqrt(v / (1 - b2**t)) + eps),
      m,
      v,
    )
    return steps, Moments(count, *codes)

  def _one(g: Array, old: list[Any], bits: Array):
    """(m, v, codes and scales of both) of one parameter."""
    m_code, m_scale, v_code, v_scale = old
    m = b1 * decode_m(m_code, m_scale) + (1 - b1) * g
    v = b2 * decode_v(v_code, v_scale) + (1 - b2) * g * g
    # Halves of 32 bits: two draws of 16, in the middle of their intervals.
    low, high = (
      (half.astype(jnp.float32) + 0.5) / 65536
      for half in (bits & 0xFFFF, bits >> 16)
    )
    return m, v, *encode_m(m, low), *encode_v(v, high)

  return optax.GradientTransformation(init, update)


def encode_v(v: Array, draw: Array) -> tuple[Array, Array]:
  """(uint8 codes, scales) of numbers >= 0; draw in (0, 1) rounds."""
  share, scale = _shares(v)
  code = _rounded(share, draw, V_LEVELS, V_DECADES)
  return jnp.where(share > 0, jnp.maximum(code, 1), 0).astype(jnp.uint8), scale


def decode_v(code: Array, scale: Array) -> Array:
  """The numbers of encode_v, float32."""
  return _times(_level(code, V_LEVELS, V_DECADES), scale)


def encode_m(m: Array, draw: Array) -> tuple[Array, Array]:
  """(int8 codes, scales) of numbers of either sign."""
  share, scale = _shares(jnp.abs(m))
  code = _rounded(share, draw, M_LEVELS, M_DECADES)
  return (jnp.sign(m) * code).astype(jnp.int8), scale


def decode_m(code: Array, scale: Array) -> Array:
  """The numbers of encode_m, float32."""
  size = jnp.abs(code.astype(jnp.int32))
  return jnp.sign(code) * _times(_level(size, M_LEVELS, M_DECADES), scale)


def _level(code: Array, levels: int, decades: float) -> Array:
  """The values of codes: 0 for code 0, 10^-decades to 1 for 1 to `levels`."""
  code = code.astype(jnp.float32)
  exponent = decades * (code - levels) / (levels - 1)
  return jnp.where(code > 0, 10.0**exponent, 0.0)


def _rounded(share: Array, draw: Array, levels: int, decades: float) -> Array:
  """The code below or above, whose mean is the share."""
  safe = jnp.where(share > 0, share, 1.0)
  place = levels + jnp.log10(safe) * (levels - 1) / decades
  below = jnp.clip(jnp.floor(place), 0, levels - 1)
  low, high = (_level(below + i, levels, decades) for i in (0, 1))
  up = share - low > draw * (high - low)
  return jnp.where(share > 0, below + up, 0)


def _blocks(x: Any) -> tuple[int, ...]:
  """The shape of x with its last axis split into (blocks, numbers of one).

  Halves of halves: a mesh that divides the axis divides its blocks.
  """
  *lead, size = x.shape or (1,)
  numbers = size
  while numbers > MOST and numbers % 2 == 0:
    numbers //= 2
  return (*lead, size // numbers, numbers)


def _shares(size: Array) -> tuple[Array, Array]:
  """(share of the largest of the block, that)."""
  blocks = size.reshape(_blocks(size))
  scale = blocks.max(axis=-1)
  divisor = jnp.where(scale > 0, scale, 1.0)[..., None]
  return (blocks / divisor).reshape(size.shape), scale


def _times(level: Array, scale: Array) -> Array:
  blocks = level.reshape(_blocks(level)) * scale[..., None]
  return blocks.reshape(level.shape)
