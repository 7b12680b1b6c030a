"""Rotary positions.

Source: "RoFormer: Enhanced Transformer with Rotary Position Embedding"
(2104.09864), in the half-split layout of the public checkpoints.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp

from rl_jax.checks import check_numbers, checked, ranged
from rl_jax.types import Array


@dataclasses.dataclass(frozen=True, kw_only=True)
@checked
class RopeScaling:
  """Llama 3: low frequencies divided by factor, smooth in between."""

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


def frequencies(cfg: Any) -> Array:
  """Radians per position of each pair of channels, float32[K / 2]."""
  exponent = jnp.arange(0, cfg.head_size, 2, dtype=jnp.float32) / cfg.head_size
  frequency = cfg.rope_theta**-exponent
  scaling = cfg.rope_scaling
  if scaling is None:
    return frequency
  turns = scaling.original_max_positions * frequency / (2 * jnp.pi)
  span = scaling.high_freq_factor - scaling.low_freq_factor
  smooth = jnp.clip((turns - scaling.low_freq_factor) / span, 0.0, 1.0)
  return frequency * (smooth + (1 - smooth) / scaling.factor)


def tables(cfg: Any, position: Array) -> tuple[Array, Array]:
  """cos and sin, float32[..., 1, K / 2], of integer positions [...]."""
  frequency = frequencies(cfg)
  angle = position[..., None, None].astype(jnp.float32)
  angle = angle * frequency.reshape((1,) * position.ndim + (1, -1))
  return jnp.cos(angle), jnp.sin(angle)


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
