"""Our parameters -> a Hugging Face directory that `transformers` loads."""

from collections.abc import Iterator, Mapping
from typing import Any

from absl import logging
from flax import traverse_util
import jax
import numpy as np

from rl_jax.models import critic, lora
from rl_jax.models.files import (
  hf_classifier,
  hf_experts,
  hf_fields,
  hf_import,
  hf_rope,
  tensor_table,
)
from rl_jax.models.files.directories import (
  host_copy,
  replace_directory,
  save_shards,
  write_json,
)
from rl_jax.models.files.tokenizer_files import save_tokenizer
from rl_jax.models.tokenizer import Tokenizer
from rl_jax.models.transformer import ModelConfig


def export_hf(
  directory: str,
  cfg: ModelConfig,
  params: Mapping[str, Any],
  tokenizer: Tokenizer,
  dtype: str | None = None,
  *,
  classifier: bool = False,
) -> None:
  """Writes config.json, the weights and the tokenizer, atomically.

  The weights of a large model are written in shards, of which the host holds
  one at a time. Adapters are merged; a value head has no place in a language
  model and is left out with a warning. import_hf reads the same values back bit
  for bit unless dtype rounds them.

  Args:
    directory: if it exists, as for replace_directory.
    cfg: the model.
    params: as the model functions take them.
    tokenizer: character tokenizers are written in our own form, which
      `transformers` does not read.
    dtype: of the file, param_dtype by default.
    classifier: write a sequence classifier, whose score is the value head.

  Raises: ValueError for a classifier without a head, or see hf_classifier.
  """
  if classifier:
    _check_classifier(cfg, params)
  if 'value_head' in params and not classifier:
    logging.warning('the value head is not exported')
  model = lora.merge(dict(params), cfg)['model']
  dtype = dtype or cfg.param_dtype
  config = config_to_hf(cfg, dtype)
  config['eos_token_id'] = list(tokenizer.eos_ids)
  config['pad_token_id'] = tokenizer.pad_id
  if classifier:
    config = hf_classifier.config_of(config, cfg, tuple(tokenizer.eos_ids))
  with replace_directory(directory) as temporary:
    write_json(temporary, 'config.json', config)
    tensors = hf_tensors(cfg, model, dtype)
    if classifier:
      head = params['value_head']
      tensors = hf_classifier.head_tensors(tensors, head, dtype)
    # transformers refuses files that do not say which framework wrote them.
    save_shards(temporary, 'model', tensors, {'format': 'pt'})
    save_tokenizer(tokenizer, temporary)


def _check_classifier(cfg: ModelConfig, params: Mapping[str, Any]) -> None:
  """Raises ValueError unless the value head is a linear one of one output."""
  if 'value_head' not in params:
    raise ValueError('a model without value head is not a sequence classifier')
  if critic.has_own(cfg):
    raise ValueError(
      "a value head with separate layers (model.critic = 'own') is not a "
      'sequence classifier'
    )
  if cfg.value_layers > 1:
    raise ValueError(
      f'a value head of {cfg.value_layers} layers is not a sequence '
      'classifier: set model.value_layers=1'
    )
  if cfg.num_values > 1:
    raise ValueError(
      f'a value head with model.num_values = {cfg.num_values} outputs is not a '
      'sequence classifier, which has one'
    )


def hf_tensors(
  cfg: ModelConfig, model: Mapping[str, Any], dtype: str
) -> Iterator[tuple[str, np.ndarray]]:
  """Names and tensors of the files: the import's table read backwards."""
  size = tensor_table.sizes(cfg)
  flat: dict[str, Any] = traverse_util.flatten_dict(model, sep='/')
  for rule in tensor_table.used_rules(cfg, hf_import.rules_of(cfg)):
    leaf, names = flat[rule.path], tensor_table.tensor_names(cfg, rule)
    # One tensor for each layer, or for each expert of each layer.
    places = np.ndindex(leaf.shape[: rule.name.count('{}')])
    for name, place in zip(names, places, strict=True):
      array = _part(leaf, place).astype(dtype, copy=False)
      array = array.reshape(tensor_table.axes_shape(rule.axes, size))
      moved = tensor_table.rearrange(array, rule.axes, rule.file_axes, size)
      yield name, np.ascontiguousarray(moved)


def _part(leaf: Any, place: tuple[int, ...]) -> np.ndarray:
  """leaf[place]; of an array on devices no more reaches the host."""
  if not place:
    return host_copy(leaf)
  if isinstance(leaf, np.ndarray):
    return leaf[place]
  return np.asarray(_index(leaf, np.asarray(place, np.int32)))


@jax.jit
def _index(leaf, place):
  """leaf[place], one program for all places."""
  return leaf[tuple(place)]


def config_to_hf(cfg: ModelConfig, dtype: str) -> dict[str, Any]:
  """ModelConfig -> config.json.

  Raises: ValueError if no supported architecture has these switches.
  """
  architecture = hf_fields.architecture_of(cfg, hf_import.ARCHITECTURES)
  return {
    'architectures': [architecture],
    'model_type': hf_fields.MODEL_TYPES.get(
      architecture, architecture.removesuffix('ForCausalLM').lower()
    ),
    'vocab_size': cfg.vocab_size,
    'hidden_size': cfg.width,
    'intermediate_size': cfg.mlp_size,
    'num_hidden_layers': cfg.num_layers,
    'num_attention_heads': cfg.num_heads,
    'num_key_value_heads': cfg.num_kv_heads,
    'head_dim': cfg.head_size,
    'rms_norm_eps': cfg.norm_eps,
    'max_position_embeddings': cfg.max_positions,
    'tie_word_embeddings': cfg.tied_embeddings,
    'attention_bias': False,
    'mlp_bias': False,
    'torch_dtype': dtype,
    **hf_experts.written(cfg),
    **hf_rope.written(cfg),
    **hf_fields.written(architecture, cfg),
  }
