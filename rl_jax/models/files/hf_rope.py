"""Rotary positions in config.json, read and written.

Version 4 of transformers has rope_theta and rope_scaling, and Gemma 3 a
rope_local_base_freq of its windowed layers; version 5 has rope_parameters, of
Gemma 3 a table for each kind of layer. Both are read; the older is written,
which both read.
"""

from collections.abc import Mapping
from typing import Any

from rl_jax import checks
from rl_jax.models import rope as rope_lib
from rl_jax.models.files.hf_fields import given
from rl_jax.models.transformer import ModelConfig

_WINDOWED = 'Gemma3ForCausalLM'  # its windowed layers rotate by another theta
_THETAS = {_WINDOWED: 1e6}  # where a file says nothing
_WINDOW_THETA = 1e4


def read(architecture: str, config: Mapping[str, Any]) -> dict[str, Any]:
  """Fields of ModelConfig: rope_theta, rope_scaling, window_rope_theta.

  Raises ValueError for a kind of scaling that is not implemented.
  """
  rope = config.get('rope_parameters') or config.get('rope_scaling') or {}
  own = {'rope_theta': config.get('rope_local_base_freq')}
  if 'full_attention' in rope:
    own = rope.get('sliding_attention') or {}
    rope = rope['full_attention']
  theta = given(config, 'rope_theta', _THETAS.get(architecture, 1e4))
  fields = {
    'rope_theta': float(given(rope, 'rope_theta', theta)),
    'rope_scaling': _scaling(rope, config),
  }
  if architecture == _WINDOWED:
    if _scaling(own, config) is not None:
      raise ValueError('scaled rotations of windowed layers')
    theta = given(own, 'rope_theta', _WINDOW_THETA)
    fields['window_rope_theta'] = float(theta)
  return fields


def _scaling(rope, config) -> rope_lib.Scaling | None:
  kind = rope.get('rope_type', rope.get('type', 'default'))
  if kind == 'default':
    return None
  if kind == 'linear':
    return rope_lib.LinearScaling(factor=float(rope['factor']))
  original = rope.get('original_max_position_embeddings')
  if kind == 'llama3':
    return rope_lib.RopeScaling(
      factor=float(rope['factor']),
      low_freq_factor=float(rope['low_freq_factor']),
      high_freq_factor=float(rope['high_freq_factor']),
      original_max_positions=original,
    )
  if kind == 'yarn':
    context = config['max_position_embeddings']
    original = context if original is None else original
    return _yarn(rope, original, context)
  raise ValueError(
    f'rope_scaling of type {kind!r} is not implemented, only linear, '
    'llama3 and yarn'
  )


def _yarn(rope, original: int, context: int) -> rope_lib.YarnScaling:
  """Fills in what a file leaves out, by the defaults of transformers 5."""
  factor = rope.get('factor')
  factor = context / original if factor is None else float(factor)
  scales = [rope.get(name) for name in ('mscale', 'mscale_all_dim')]
  attention = rope.get('attention_factor')
  if attention is None:
    attention = rope_lib.attention_factor(factor)
    if all(scales):
      one, other = (rope_lib.attention_factor(factor, m) for m in scales)
      attention = one / other
  return rope_lib.YarnScaling(
    factor=factor,
    original_max_positions=original,
    attention_factor=float(attention),
    beta_fast=float(given(rope, 'beta_fast', 32)),
    beta_slow=float(given(rope, 'beta_slow', 1)),
    truncate=rope.get('truncate', True),
  )


def written(cfg: ModelConfig) -> dict[str, Any]:
  """The fields of config.json."""
  fields = {
    'rope_theta': cfg.rope_theta,
    'rope_scaling': _written_scaling(cfg.rope_scaling),
  }
  if cfg.window_rope_theta is not None:
    fields['rope_local_base_freq'] = cfg.window_rope_theta
  return fields


def _written_scaling(scaling) -> dict[str, Any] | None:
  if scaling is None:
    return None
  if isinstance(scaling, rope_lib.LinearScaling):
    return {'rope_type': 'linear', 'factor': scaling.factor}
  fields = {
    'factor': scaling.factor,
    'original_max_position_embeddings': scaling.original_max_positions,
  }
  if isinstance(scaling, rope_lib.YarnScaling):
    names = ('attention_factor', 'beta_fast', 'beta_slow', 'truncate')
    own = checks.values(scaling, names)
    return {'rope_type': 'yarn', **fields, **own}
  return {
    'rope_type': 'llama3',
    **fields,
    'low_freq_factor': scaling.low_freq_factor,
    'high_freq_factor': scaling.high_freq_factor,
  }
