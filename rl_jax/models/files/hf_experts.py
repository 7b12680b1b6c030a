"""Experts in Hugging Face directories: tensors and fields of config.json."""

from collections.abc import Mapping
from typing import Any

from rl_jax.models.files.tensor_table import Rule
from rl_jax.models.transformer import ModelConfig

QWEN3, OLMOE = 'Qwen3MoeForCausalLM', 'OlmoeForCausalLM'
_EXPERT = 'model.layers.{}.mlp.experts.{}.'

# In place of the rules of one MLP.
RULES = (
  Rule('model.layers.{}.mlp.gate.weight', 'layers/router', 'E D', 'D E'),
  Rule(_EXPERT + 'gate_proj.weight', 'layers/w_gate', 'F D', 'D F'),
  Rule(_EXPERT + 'up_proj.weight', 'layers/w_up', 'F D', 'D F'),
  Rule(_EXPERT + 'down_proj.weight', 'layers/w_down', 'D F', 'F D'),
)
# In place of the rules of norms of each head.
WHOLE_NORMS = tuple(
  Rule(
    f'model.layers.{{}}.self_attn.{x}_norm.weight',
    f'layers/{x}_norm',
    f'{heads}K',
    f'{heads} K',
  )
  for x, heads in (('q', 'H'), ('k', 'J'))
)


def read(architecture: str, config: Mapping[str, Any]) -> dict[str, Any]:
  """Fields of ModelConfig, {} without experts.

  Raises: ValueError for layers without experts, and for windows.
  """
  if architecture not in (QWEN3, OLMOE):
    return {}
  if config.get('use_sliding_window'):
    raise ValueError(f'use_sliding_window of {architecture}')
  prefix = 'moe_' if architecture == QWEN3 else ''
  found = {
    'num_experts': config.get('num_experts', config.get('num_local_experts')),
    'experts_per_token': config.get('num_experts_per_tok'),
    'mlp_size': config.get(f'{prefix}intermediate_size'),
  }
  for field, value in found.items():
    if value is None:
      raise ValueError(f'{field} of {architecture} is missing')
  return {**found, 'normalized_gates': config.get('norm_topk_prob', False)}


def fits(architecture: str, cfg: ModelConfig) -> bool:
  """Returns whether the architecture has the model's experts, or none as it."""
  if architecture not in (QWEN3, OLMOE):
    return not cfg.num_experts
  # OLMoE has no field for the size of heads.
  whole = architecture == QWEN3 or cfg.num_heads * cfg.head_size == cfg.width
  return bool(cfg.num_experts) and cfg.window is None and whole


def written(cfg: ModelConfig) -> dict[str, Any]:
  """The fields of config.json."""
  if not cfg.num_experts:
    return {}
  return {
    'moe_intermediate_size': cfg.mlp_size,
    'num_experts': cfg.num_experts,
    'num_experts_per_tok': cfg.experts_per_token,
    'norm_topk_prob': cfg.normalized_gates,
  }
