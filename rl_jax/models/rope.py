"""Rotary positions.

Source: "RoFormer: Enhanced Transformer with Rotary Position Embedding"
(2104.09864), in the half-split layout of the public checkpoints.
"""

import dataclasses
import math
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from rl_jax.checks import check_numbers, checked, ranged
from rl_jax.types import Array

EVERYTHING = 1 << 30  # the window of a layer that has none


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class RopeScaling:
  """Llama 3: low frequencies divided by factor, smooth in between."""

  attention_factor: ClassVar[float] = 1.0

  factor: float = ranged(low=0.0, open_low=True)
  low_freq_factor: float = ranged(low=0.0, open_low=True)
  high_freq_factor: float = ranged(low=0.0, open_low=True)
  original_max_positions: int = ranged(low=1)

  def __post_init__(self):
    check_numbers(self)
    if self.low_freq_factor >= self.high_freq_factor:
      raise ValueError(
        f'RopeScaling.low_freq_factor = {self.low_freq_factor} is not below '
        f'high_freq_factor = {self.high_freq_factor}'
      )

  def frequencies(self, frequency: Array, theta: float) -> Array:
    """Scaled, [K / 2]."""
    del theta
    turns = self.original_max_positions * frequency / (2 * jnp.pi)
    span = self.high_freq_factor - self.low_freq_factor
    smooth = jnp.clip((turns - self.low_freq_factor) / span, 0.0, 1.0)
    return frequency * (smooth + (1 - smooth) / self.factor)


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class LinearScaling:
  """All frequencies divided by factor, as if positions were.

  Source: "Extending Context Window of Large Language Models via Positional
  Interpolation" (2306.15595).
  """

  attention_factor: ClassVar[float] = 1.0

  factor: float = ranged(low=0.0, open_low=True)

  def __post_init__(self):
    check_numbers(self)

  def frequencies(self, frequency: Array, theta: float) -> Array:
    """Scaled, [K / 2]."""
    del theta
    return frequency / self.factor


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class YarnScaling:
  """YaRN: pairs of channels that turn seldom are divided by factor.

  Channel i turns i_k times in the original context where i = K log(context /
  (2 pi i_k)) / (2 log theta). From the channel of beta_fast turns to that of
  beta_slow the share of the divided frequency rises linearly from 0 to 1;
  truncate rounds both channels outwards. cos and sin are multiplied by
  attention_factor.

  Source: "YaRN: Efficient Context Window Extension of Large Language Models"
  (2309.00071), as `transformers` computes it.
  """

  factor: float = ranged(low=0.0, open_low=True)
  original_max_positions: int = ranged(low=1)
  attention_factor: float = ranged(1.0, 0.0, open_low=True)
  beta_fast: float = ranged(32.0, 0.0, open_low=True)
  beta_slow: float = ranged(1.0, 0.0, open_low=True)
  truncate: bool = True

  def __post_init__(self):
    check_numbers(self)
    if self.beta_fast <= self.beta_slow:
      raise ValueError(
        f'YarnScaling.beta_fast = {self.beta_fast} is not above beta_slow = '
        f'{self.beta_slow}'
      )

  def frequencies(self, frequency: Array, theta: float) -> Array:
    """Scaled, [K / 2]."""
    pairs = frequency.shape[0]
    low, high = (
      self._channel(beta, 2 * pairs, theta)
      for beta in (self.beta_fast, self.beta_slow)
    )
    if self.truncate:
      low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, 2 * pairs - 1)
    high += 1e-3 * (low == high)
    ramp = np.clip((np.arange(pairs) - low) / (high - low), 0.0, 1.0)
    return frequency * jnp.asarray(1 - ramp + ramp / self.factor, jnp.float32)

  def _channel(self, turns: float, head_size: int, theta: float) -> float:
    context = self.original_max_positions
    ratio = math.log(context / (turns * 2 * math.pi))
    return head_size * ratio / (2 * math.log(theta))


Scaling = RopeScaling | LinearScaling | YarnScaling


def attention_factor(factor: float, mscale: float = 1.0) -> float:
  """The factor of YaRN, 0.1 mscale log(factor) + 1 if factor > 1, else 1."""
  return 0.1 * mscale * math.log(factor) + 1.0 if factor > 1 else 1.0


def _plain(theta: float, head_size: int) -> Array:
  exponent = jnp.arange(0, head_size, 2, dtype=jnp.float32) / head_size
  return theta**-exponent


def frequencies(cfg: Any) -> Array:
  """Radians per position of each pair of channels, float32[K / 2]."""
  frequency, scaling = _plain(cfg.rope_theta, cfg.head_size), cfg.rope_scaling
  if scaling is None:
    return frequency
  return scaling.frequencies(frequency, cfg.rope_theta)


def tables(cfg: Any, position: Array) -> tuple[Array, ...]:
  """cos and sin, float32[..., 1, K / 2], of integer positions [...].

  If layers with their own window have rotations, these two come last.
  """
  factor = (
    1.0 if cfg.rope_scaling is None else cfg.rope_scaling.attention_factor
  )
  found = _tables(frequencies(cfg), position, factor)
  if cfg.window_rope_theta is None:
    return found
  return *found, *_tables(
    _plain(cfg.window_rope_theta, cfg.head_size), position
  )


def _tables(frequency, position, factor=1.0) -> tuple[Array, Array]:
  angle = position[..., None, None].astype(jnp.float32)
  angle = angle * frequency.reshape((1,) * position.ndim + (1, -1))
  if factor == 1.0:
    return jnp.cos(angle), jnp.sin(angle)
  return jnp.cos(angle) * factor, jnp.sin(angle) * factor


def of_layer(tables: tuple[Array, ...], window: Array | None) -> tuple:
  """(cos, sin) of a layer, by its window."""
  if len(tables) == 2:
    return tables
  assert window is not None  # two bases are for models with windows
  windowed = window < EVERYTHING
  both = zip(tables[:2], tables[2:], strict=True)
  return tuple(jnp.where(windowed, own, whole) for whole, own in both)


def rotate(x: Array, tables: tuple[Array, Array]) -> Array:
  """Rotates channel i with channel i + K / 2 of x [..., heads, K]."""
  cos, sin = tables
  first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
  return jnp.concatenate(
    [first * cos - second * sin, second * cos + first * sin], axis=-1
  ).astype(x.dtype)


def prompt_positions(mask_NP: Array) -> Array:
  """Positions count real tokens only, so left padding changes nothing."""
  return jnp.maximum(jnp.cumsum(mask_NP.astype(jnp.int32), axis=1) - 1, 0)
