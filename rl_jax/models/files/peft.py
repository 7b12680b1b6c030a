"""Adapters in the files of PEFT, read and written.

A directory holds adapter_config.json and adapter_model.safetensors with two
matrices for each adapted weight: lora_A [rank, inputs], lora_B [outputs, rank].
"""

from collections.abc import Mapping
import dataclasses
import math
import os
import sys
from typing import Any

import jax.numpy as jnp
import numpy as np

from rl_jax.checks import INT32
from rl_jax.models import experts, lora, transformer
from rl_jax.models.files import directories, hf_import
from rl_jax.models.transformer import ModelConfig

CONFIG, WEIGHTS = 'adapter_config.json', 'adapter_model.safetensors'
_PREFIX = 'base_model.model.'
_MODULES = {
  rule.path.removeprefix('layers/'): rule.name.removesuffix('.weight')
  for rule in hf_import.RULES
  if rule.path.removeprefix('layers/') in lora.TARGETS
}
# Fields that would change the mathematics: every other value is refused.
_FIXED_FIELDS = {
  'peft_type': 'LORA',
  'bias': 'none',
  'fan_in_fan_out': False,
  'use_dora': False,
  'lora_bias': False,
  'use_qalora': False,
}
_ABSENT_FIELDS = (
  *('modules_to_save', 'rank_pattern', 'alpha_pattern', 'layer_replication'),
  *('layers_to_transform', 'trainable_token_indices', 'target_parameters'),
  *('use_bdlora', 'alora_invocation_tokens', 'arrow_config', 'kasa_config'),
)


def export_adapters(
  directory: str, cfg: ModelConfig, params: Mapping[str, Any], base: str
) -> None:
  """Writes the adapters of a model, atomically; base: of which they are.

  Raises: ValueError if the model has none, or some of experts.
  """
  if not cfg.lora_rank:
    raise ValueError('the model has no adapters: lora_rank = 0')
  _check_experts(cfg, cfg.lora_targets)
  tensors = {}
  for target, adapter in params['lora']['layers'].items():
    for layer in range(cfg.num_layers):
      a, b = (np.asarray(adapter[name][layer], np.float32) for name in 'ab')
      name = _name(target, layer)
      rank = cfg.lora_rank
      matrices = {'A': a.reshape(-1, rank).T, 'B': b.reshape(rank, -1).T}
      for letter, matrix in matrices.items():
        tensors[name.format(letter)] = np.ascontiguousarray(matrix)
  modules = sorted(_MODULES[t].split('.')[-1] for t in cfg.lora_targets)
  config = {
    **_FIXED_FIELDS,
    'task_type': 'CAUSAL_LM',
    'base_model_name_or_path': base,
    'r': cfg.lora_rank,
    'lora_alpha': cfg.lora_alpha,
    'lora_dropout': 0.0,
    'target_modules': modules,
    'use_rslora': False,
    'inference_mode': True,
  }
  with directories.replace_directory(directory) as temporary:
    directories.write_json(temporary, CONFIG, config)
    directories.save_tensors(temporary, WEIGHTS, tensors, {'format': 'pt'})


def import_adapters(
  directory: str, cfg: ModelConfig
) -> tuple[ModelConfig, dict[str, Any]]:
  """(the model with adapters, {'lora': ...}), of a base model without.

  The adapted weights are those of the file, in all layers. With use_rslora,
  alpha / sqrt(rank) is the scale: lora_alpha is then alpha * sqrt(rank).

  Raises: ValueError naming the field or tensor that does not fit.
  """
  if cfg.lora_rank:
    raise ValueError(f'{directory}: the base model has adapters already')
  path = os.path.join(directory, CONFIG)
  rank, alpha = _scale(directories.read_json(path), path)
  path = os.path.join(directory, WEIGHTS)
  views = directories.open_tensors(path)
  targets = tuple(
    target
    for target in lora.TARGETS
    if any(f'.{_MODULES[target].split("{}.")[1]}.' in name for name in views)
  )
  if not targets:
    raise ValueError(f'{path} has no adapter of {", ".join(_MODULES.values())}')
  _check_experts(cfg, targets)
  cfg = dataclasses.replace(
    cfg, lora_rank=rank, lora_alpha=alpha, lora_targets=targets
  )
  specs = transformer.specs(cfg)['lora']['layers']
  wanted = _wanted(cfg, specs)
  found = {name: tuple(view.get_shape()) for name, view in views.items()}
  problems = [f'{name} is missing' for name in wanted if name not in found]
  problems += [
    f'{n} has no place in the model' for n in found if n not in wanted
  ]
  problems += [
    f'{name} has shape {found[name]}, not {shape}'
    for name, shape in wanted.items()
    if name in found and found[name] != shape
  ]
  if problems:
    listed = '\n  '.join(problems[:8])
    raise ValueError(f'{path} does not fit the model:\n  {listed}')
  layers = {
    target: {name: _leaf(views, target, name, spec) for name, spec in s.items()}
    for target, s in specs.items()
  }
  return cfg, {'lora': {'layers': layers}}


def _check_experts(cfg: ModelConfig, targets: tuple[str, ...]) -> None:
  """Raises ValueError for adapters of experts: PEFT has no fixed names."""
  found = sorted(set(targets) & set(experts.WEIGHTS))
  if cfg.num_experts and found:
    raise ValueError(
      f'lora_targets has {found} of {cfg.num_experts} experts, which these '
      'files cannot hold: merge them (experiments.export_weights)'
    )


def _scale(config: Mapping[str, Any], path: str) -> tuple[int, float]:
  """(rank, our lora_alpha)."""
  for field, value in _FIXED_FIELDS.items():
    if config.get(field, value) != value:
      raise ValueError(
        f'{path}: {field} = {config[field]!r:.80} is not implemented, only '
        f'{value!r}'
      )
  for field in _ABSENT_FIELDS:
    if config.get(field):
      raise ValueError(
        f'{path}: {field} = {config[field]!r:.80} is not implemented'
      )
  rank, alpha = config.get('r'), config.get('lora_alpha')
  if type(rank) is not int or not 0 < rank <= INT32:
    raise ValueError(f'{path}: r = {rank!r:.80} is not a positive int')
  most = sys.float_info.max
  is_number = isinstance(alpha, (int, float)) and not isinstance(alpha, bool)
  if not is_number or not 0 < alpha <= most:
    raise ValueError(f'{path}: lora_alpha = {alpha!r:.80} is not positive')
  root = math.sqrt(rank) if config.get('use_rslora') else 1.0
  return rank, float(alpha) * root


def _name(target: str, layer: int) -> str:
  """Of a tensor; `{}` stands for A or B."""
  return f'{_PREFIX}{_MODULES[target].format(layer)}.lora_{{}}.weight'


def _wanted(cfg: ModelConfig, specs) -> dict[str, tuple[int, ...]]:
  """Name -> shape of all tensors."""
  shapes, rank = {}, cfg.lora_rank
  for target, adapter in specs.items():
    inputs = math.prod(adapter['a'].shape[1:-1])
    outputs = math.prod(adapter['b'].shape[2:])
    for layer in range(cfg.num_layers):
      name = _name(target, layer)
      shapes[name.format('A')] = (rank, inputs)
      shapes[name.format('B')] = (outputs, rank)
  return shapes


def _leaf(views, target: str, leaf: str, spec) -> Any:
  """A matrix of all layers, in our shape."""
  names = (_name(target, i).format(leaf.upper()) for i in range(spec.shape[0]))
  stacked = np.stack([np.asarray(views[n][:], np.float32).T for n in names])
  if not np.isfinite(stacked).all():
    raise ValueError(
      f'{_name(target, 0).format(leaf.upper())}, or that of another layer, has '
      'numbers that are not finite'
    )
  return jnp.asarray(stacked.reshape(spec.shape))
