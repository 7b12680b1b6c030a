"""Windows, caps and activations in config.json, read and written."""

from collections.abc import Mapping
from typing import Any

from rl_jax import checks
from rl_jax.models.files import hf_experts
from rl_jax.models.transformer import ModelConfig

_MISTRAL, _GEMMA2, _GEMMA3 = (
  f'{name}ForCausalLM' for name in ('Mistral', 'Gemma2', 'Gemma3')
)
_LLAMA = 'LlamaForCausalLM'
_GEMMAS = (_GEMMA2, _GEMMA3)
MODEL_TYPES = {_GEMMA3: 'gemma3_text', hf_experts.QWEN3: 'qwen3_moe'}
# Our activation -> the name in the files.
_ACTIVATIONS = {'silu': 'silu', 'gelu_tanh': 'gelu_pytorch_tanh'}
_WINDOWED, _FULL = 'sliding_attention', 'full_attention'
# Every so many layers one has no window, where a file does not list them.
_PERIODS = {_GEMMA2: 2, _GEMMA3: 6}
_CAPS = {'attn_logit_softcapping': 50.0, 'final_logit_softcapping': 30.0}


def given(config: Mapping[str, Any], name: str, default: Any) -> Any:
  """The value of a field, or the default if it is missing or null."""
  value = config.get(name)
  return default if value is None else value


def is_tied(architecture: str) -> bool:
  """Returns what a file means that has no tie_word_embeddings, as those of
  Gemma.
  """
  return architecture in _GEMMAS


def check_activation(config: Mapping[str, Any], activation: str) -> None:
  """Raises ValueError if the file names another activation."""
  wanted = _ACTIVATIONS[activation]
  for field in ('hidden_act', 'hidden_activation'):
    if config.get(field, wanted) not in (wanted, None):
      raise ValueError(
        f'{field} = {config[field]!r} is not implemented, only {wanted!r}'
      )


def windows(architecture: str, config: Mapping[str, Any]) -> dict[str, Any]:
  """Fields of ModelConfig: window and windowed, {} without windows.

  Raises ValueError for kinds of layers that are not implemented.
  """
  layers, window = config['num_hidden_layers'], config.get('sliding_window')
  kinds = config.get('layer_types')
  if kinds is None:
    kinds = _kinds(architecture, config, layers)
  unknown = sorted({str(kind) for kind in kinds} - {_WINDOWED, _FULL})
  if unknown or len(kinds) != layers:
    raise ValueError(
      f'layer_types = {kinds!r:.80}: expected {layers} of '
      f'{_FULL} and {_WINDOWED}'
    )
  windowed = tuple(i for i, kind in enumerate(kinds) if kind == _WINDOWED)
  if windowed and window is None:
    raise ValueError('layer_types without sliding_window')
  return {'window': window, 'windowed': windowed} if windowed else {}


def _kinds(architecture, config, layers: int) -> list[str]:
  """Returns what a file of version 4 means that does not list its layers."""
  window = config.get('sliding_window')
  if architecture in _PERIODS:
    period = given(config, 'sliding_window_pattern', _PERIODS[architecture])
    return [
      _FULL if (i + 1) % period == 0 else _WINDOWED for i in range(layers)
    ]
  first = layers
  if architecture == _MISTRAL and window is not None:
    first = 0
  elif config.get('use_sliding_window') and window is not None:
    first = config.get('max_window_layers', 28)
  return [_FULL if i < first else _WINDOWED for i in range(layers)]


def score_limits(
  architecture: str, config: Mapping[str, Any]
) -> dict[str, Any]:
  """Fields of ModelConfig: caps, and the scale of queries; {} if not Gemma."""
  if architecture not in _GEMMAS:
    return {}
  missing = _CAPS if architecture == _GEMMA2 else {}
  scores, logits = (config.get(n, missing.get(n)) for n in _CAPS)
  if architecture == _GEMMA3 and scores is not None:
    # transformers reads this field and ignores it.
    raise ValueError(f'attn_logit_softcapping of {architecture}')
  return {
    'query_pre_attn_scalar': float(config.get('query_pre_attn_scalar', 256)),
    'attention_cap': scores and float(scores),
    'logit_cap': logits and float(logits),
  }


def architecture_of(
  cfg: ModelConfig, architectures: Mapping[str, Mapping[str, Any]]
) -> str:
  """The architecture whose switches a model has.

  Raises: ValueError if there is none.
  """
  names = {name for switches in architectures.values() for name in switches}
  plain = {
    name: ModelConfig.__dataclass_fields__[name].default for name in names
  }
  mine = checks.values(cfg, sorted(names))
  for architecture, switches in architectures.items():
    if {**plain, **switches} != mine:
      continue
    if architecture == _LLAMA and cfg.window is not None:
      continue
    if architecture == _MISTRAL and len(cfg.windowed) < cfg.num_layers:
      continue
    if not hf_experts.fits(architecture, cfg):
      continue
    if _other_scores(architecture, cfg):
      continue
    return architecture
  raise ValueError(
    f'no Hugging Face architecture has {mine}, these windows and caps: one of '
    f'{dict(architectures)}'
  )


def _other_scores(architecture, cfg) -> bool:
  """Returns whether the architecture has no place for the model's scores."""
  if architecture == _GEMMA2:
    return cfg.window_rope_theta is not None
  if architecture == _GEMMA3:
    return cfg.attention_cap is not None or cfg.window_rope_theta is None
  limits = (cfg.query_pre_attn_scalar, cfg.attention_cap, cfg.logit_cap)
  return any(x is not None for x in (*limits, cfg.window_rope_theta))


def written(architecture: str, cfg: ModelConfig) -> dict[str, Any]:
  """The fields of config.json."""
  kinds = [
    _WINDOWED if i in cfg.windowed else _FULL for i in range(cfg.num_layers)
  ]
  activation = _ACTIVATIONS[cfg.activation]
  if architecture in _GEMMAS:
    scalar = float(cfg.query_pre_attn_scalar or cfg.head_size)
    return {
      'hidden_activation': activation,
      'query_pre_attn_scalar': int(scalar) if scalar.is_integer() else scalar,
      'attn_logit_softcapping': cfg.attention_cap,
      'final_logit_softcapping': cfg.logit_cap,
      # Both have a default where it is missing.
      'sliding_window': cfg.window or cfg.max_positions,
      'layer_types': kinds,
    }
  fields = {'hidden_act': activation}
  if architecture == _MISTRAL:
    return {**fields, 'sliding_window': cfg.window}
  if cfg.window is None:
    return {**fields, 'use_sliding_window': False}
  return {
    **fields,
    'use_sliding_window': True,
    'sliding_window': cfg.window,
    'max_window_layers': min(cfg.windowed),
    'layer_types': kinds,
  }
