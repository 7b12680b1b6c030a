"""Hugging Face directories: Llama, Mistral, Qwen2, Qwen3, Gemma and OLMoE.

Language models, and reward models: sequence classifiers with one label, and
Qwen2ForProcessRewardModel.
"""

from collections.abc import Mapping
import dataclasses
import math
import os
from typing import Any

import numpy as np

from rl_jax.models import tokenizer as tokenizer_lib
from rl_jax.models.files import (
  directories,
  hf_classifier,
  hf_experts,
  hf_fields,
  hf_rope,
  placement,
  tensor_table,
  tokenizer_files,
)
from rl_jax.models.files.tensor_table import Rule, StoredTensor
from rl_jax.models.transformer import ModelConfig

_ATTENTION = 'model.layers.{}.self_attn.'
_MLP = 'model.layers.{}.mlp.'

RULES = (
  Rule('model.embed_tokens.weight', 'embed', 'V D', 'V D'),
  Rule('model.layers.{}.input_layernorm.weight', 'layers/attn_norm', 'D', 'D'),
  Rule(_ATTENTION + 'q_proj.weight', 'layers/wq', 'HK D', 'D H K'),
  Rule(_ATTENTION + 'k_proj.weight', 'layers/wk', 'JK D', 'D J K'),
  Rule(_ATTENTION + 'v_proj.weight', 'layers/wv', 'JK D', 'D J K'),
  Rule(_ATTENTION + 'o_proj.weight', 'layers/wo', 'D HK', 'H K D'),
  Rule(_ATTENTION + 'q_proj.bias', 'layers/bq', 'HK', 'H K'),
  Rule(_ATTENTION + 'k_proj.bias', 'layers/bk', 'JK', 'J K'),
  Rule(_ATTENTION + 'v_proj.bias', 'layers/bv', 'JK', 'J K'),
  Rule(_ATTENTION + 'q_norm.weight', 'layers/q_norm', 'K', 'K'),
  Rule(_ATTENTION + 'k_norm.weight', 'layers/k_norm', 'K', 'K'),
  Rule(
    'model.layers.{}.post_attention_layernorm.weight',
    'layers/mlp_norm',
    'D',
    'D',
  ),
  Rule(_MLP + 'gate_proj.weight', 'layers/w_gate', 'F D', 'D F'),
  Rule(_MLP + 'up_proj.weight', 'layers/w_up', 'F D', 'D F'),
  Rule(_MLP + 'down_proj.weight', 'layers/w_down', 'D F', 'F D'),
  Rule('model.norm.weight', 'final_norm', 'D', 'D'),
  Rule('lm_head.weight', 'lm_head', 'V D', 'D V'),
)

# Where norms follow attention and MLP too, names stand for other tensors.
_POST_NORMS = (
  Rule(
    'model.layers.{}.post_attention_layernorm.weight',
    'layers/attn_post_norm',
    'D',
    'D',
  ),
  Rule(
    'model.layers.{}.pre_feedforward_layernorm.weight',
    'layers/mlp_norm',
    'D',
    'D',
  ),
  Rule(
    'model.layers.{}.post_feedforward_layernorm.weight',
    'layers/mlp_post_norm',
    'D',
    'D',
  ),
)

_GEMMA = {
  'activation': 'gelu_tanh',
  'norm_offset': True,
  'post_norms': True,
  'scaled_embeddings': True,
}
# Architecture -> what its configuration fixes; the rest as in ModelConfig.
ARCHITECTURES = {
  'LlamaForCausalLM': {'qkv_bias': False, 'qk_norm': False},
  'MistralForCausalLM': {'qkv_bias': False, 'qk_norm': False},
  'Qwen2ForCausalLM': {'qkv_bias': True, 'qk_norm': False},
  'Qwen3ForCausalLM': {'qkv_bias': False, 'qk_norm': True},
  'Gemma2ForCausalLM': {'qkv_bias': False, 'qk_norm': False, **_GEMMA},
  'Gemma3ForCausalLM': {'qkv_bias': False, 'qk_norm': True, **_GEMMA},
  hf_experts.QWEN3: {'qkv_bias': False, 'qk_norm': True},
  hf_experts.OLMOE: {
    'qkv_bias': False,
    'qk_norm': True,
    'qk_norm_whole': True,
  },
}

# Fields that would change the mathematics, and the only value they may have.
_FIXED_FIELDS = {
  'attention_bias': False,
  'mlp_bias': False,
  'partial_rotary_factor': 1.0,
  'quantization_config': None,
  'use_bidirectional_attention': False,
  'clip_qkv': None,
  'decoder_sparse_step': 1,  # every layer has experts
  'mlp_only_layers': [],
}
# In older files, in each layer; as in `transformers`, config.json decides.
_FREQUENCIES = '.rotary_emb.inv_freq'


def rules_of(cfg: ModelConfig) -> tuple[Rule, ...]:
  """The table of the tensors of a model."""
  rules = (*RULES, *_POST_NORMS) if cfg.post_norms else RULES
  table = {rule.name: rule for rule in rules}
  replaced = hf_experts.RULES if cfg.num_experts else ()
  replaced += hf_experts.WHOLE_NORMS if cfg.qk_norm_whole else ()
  paths = {rule.path for rule in replaced}
  kept = (rule for rule in table.values() if rule.path not in paths)
  return (*kept, *replaced)


def import_hf(directory: str, mesh: Any = None, **overrides):
  """Reads a checkpoint: (ModelConfig, params, tokenizer).

  Args:
    directory: config.json, one or several .safetensors, tokenizer.json.
    mesh: where to place the parameters; None is the default device.
    **overrides: fields of ModelConfig (compute_dtype, param_dtype, remat).

  Raises: ValueError naming the field, tensor or file that does not fit.
  """
  path = os.path.join(directory, 'config.json')
  size = config_from_hf(directories.read_json(path), path).vocab_size
  tokenizer = tokenizer_files.load_tokenizer(directory, size)
  tokenizer_lib.check_vocabulary(tokenizer, size, directory)
  cfg, params = import_weights(directory, mesh, **overrides)
  return cfg, params, tokenizer


def import_weights(directory: str, mesh: Any = None, **overrides):
  """Imports as import_hf does, without a tokenizer: (ModelConfig, params)."""
  path = os.path.join(directory, 'config.json')
  cfg = config_from_hf(directories.read_json(path), path)
  tensors, head = open_safetensors(directory), {}
  if cfg.value_head:
    head = hf_classifier.head_readers(cfg, tensors, directory)
  cfg = dataclasses.replace(cfg, **overrides)
  if cfg.tied_embeddings:
    tensors = _without_copied_head(tensors)
  readers = tensor_table.match(cfg, rules_of(cfg), tensors, directory)
  return cfg, tensor_table.fill(cfg, {**readers, **head}, mesh, directory)


def config_from_hf(config: Mapping[str, Any], origin: str) -> ModelConfig:
  """config.json -> ModelConfig.

  Raises: ValueError naming an architecture, a field that is missing, or a
    value that this decoder does not implement.
  """
  try:
    return _config_from_hf(config, origin)
  except (TypeError, LookupError, AttributeError, ArithmeticError) as error:
    reason = f'{type(error).__name__}: {error}'
    raise ValueError(f'{origin} is damaged: {reason}') from error


def _config_from_hf(config: Mapping[str, Any], origin: str) -> ModelConfig:
  architecture = (config.get('architectures') or ['?'])[0]
  classifiers = {hf_classifier.name_of(name): name for name in ARCHITECTURES}
  classifiers |= hf_classifier.PROCESS
  is_classifier = architecture in classifiers
  architecture = classifiers.get(architecture, architecture)
  if architecture not in ARCHITECTURES:
    raise ValueError(
      f'{origin}: architecture {architecture} is none of '
      + ', '.join((*ARCHITECTURES, *classifiers))
    )
  for field, value in _FIXED_FIELDS.items():
    if config.get(field, value) not in (value, None):
      raise ValueError(
        f'{origin}: {field} = {config[field]!r} is not implemented, only '
        f'{value!r}'
      )

  def need(field):
    if config.get(field) is None:
      raise ValueError(f'{origin} has no {field}')
    return config[field]

  width, num_heads = need('hidden_size'), need('num_attention_heads')
  switches = ARCHITECTURES[architecture]
  head_size = config.get('head_dim')
  if head_size is None:
    head_size = width // num_heads
  fields: dict[str, Any] = dict(
    vocab_size=need('vocab_size'),
    num_layers=need('num_hidden_layers'),
    width=width,
    num_heads=num_heads,
    num_kv_heads=hf_fields.given(config, 'num_key_value_heads', num_heads),
    head_size=head_size,
    mlp_size=need('intermediate_size'),
    norm_eps=need('rms_norm_eps'),
    tied_embeddings=config.get(
      'tie_word_embeddings', hf_fields.is_tied(architecture)
    ),
    max_positions=need('max_position_embeddings'),
    **switches,
  )
  if is_classifier:
    fields |= hf_classifier.fields(config)
  try:
    fields |= hf_experts.read(architecture, config)
    cfg = ModelConfig(**fields)  # checks sizes before layers are listed
    hf_fields.check_activation(config, cfg.activation)
    return dataclasses.replace(
      cfg,
      **hf_rope.read(architecture, config),
      **hf_fields.windows(architecture, config),
      **hf_fields.score_limits(architecture, config),
    )
  except ValueError as error:
    raise ValueError(f'{origin}: {error}') from None


def open_safetensors(directory: str) -> dict[str, StoredTensor]:
  """The tensors of all files of a directory, none read yet.

  Raises: ValueError naming the file that is missing, torn or quantised.
  """
  tensors = {}
  for path in directories.tensor_files(directory, 'model'):
    for key, view in directories.open_tensors(path).items():
      if key.endswith(_FREQUENCIES):
        continue
      tensors[key] = StoredTensor(
        tuple(view.get_shape()), path, view.__getitem__
      )
  return tensors


def _without_copied_head(tensors):
  """Tied checkpoints may hold the embedding twice; it must be the same."""
  head = tensors.get('lm_head.weight')
  embed = tensors.get('model.embed_tokens.weight')
  if head is None or embed is None:
    return tensors
  if not _equal(head, embed):
    raise ValueError(
      f'lm_head.weight ({head.origin}) differs from the embedding, but '
      'config.json says tie_word_embeddings'
    )
  return {k: v for k, v in tensors.items() if k != 'lm_head.weight'}


def _equal(one: StoredTensor, other: StoredTensor) -> bool:
  """Compares rows by blocks, so that neither is read whole."""
  if one.shape != other.shape:
    return False
  size = one.shape[0] if one.shape else 0
  row = max(1, math.prod(one.shape[1:]))
  step = max(1, placement.BLOCK_ELEMENTS // (2 * row))
  rows = (slice(i, min(i + step, size)) for i in range(0, size, step))
  return all(np.array_equal(one.read(part), other.read(part)) for part in rows)
