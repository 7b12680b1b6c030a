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
  'alora_invocation_tokens',
  'alpha_pattern',
  'arrow_config',
  'kasa_config',
  'layer_replication',
  'layers_to_transform',
  'megatron_config',
  'modules_to_save',
  'monteclora_config',
  'rank_pattern',
  'target_parameters',
  'trainable_token_indices',
  'use_bdlora',
)
# Fields that change no function of the weights in the file: what they are, of
# which modules (their names tell), and how they were trained.
_OTHER_FIELDS = (
  'auto_mapping',
  'base_model_name_or_path',
  'corda_config',
  'ensure_weight_tying',
  'eva_config',
  'exclude_modules',
  'inference_mode',
  'init_lora_weights',  # see _check_base
  'layers_pattern',
  'loftq_config',
  'lora_alpha',
  'lora_dropout',
  'lora_ga_config',
  'megatron_core',
  'peft_version',
  'qalora_group_size',
  'r',
  'revision',
  'runtime_config',
  'target_modules',
  'task_type',
  'use_rslora',
  'velora_config',
)
_KNOWN_FIELDS = {*_FIXED_FIELDS, *_ABSENT_FIELDS, *_OTHER_FIELDS}
# Values of init_lora_weights that leave the base as it was.
_PLAIN_BASE = (True, False, None, 'gaussian', 'eva', 'orthogonal', 'mica')
_RESIDUAL_BASE = ('pissa', 'olora', 'corda', 'loftq', 'lora_ga')


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
  unknown = [name for name in config if name not in _KNOWN_FIELDS]
  for field in unknown:
    if config[field]:
      raise ValueError(
        f'{path}: {field} = {config[field]!r:.80} is not known here, and may '
        'change what the adapter computes: if it does not, remove it'
      )
  _check_base(config.get('init_lora_weights'), path)
  rank, alpha = config.get('r'), config.get('lora_alpha')
  if type(rank) is not int or not 0 < rank <= INT32:
    raise ValueError(f'{path}: r = {rank!r:.80} is not a positive int')
  most = sys.float_info.max
  is_number = isinstance(alpha, (int, float)) and not isinstance(alpha, bool)
  if not is_number or not 0 < alpha <= most:
    raise ValueError(f'{path}: lora_alpha = {alpha!r:.80} is not positive')
  stabilised = config.get('use_rslora')
  if stabilised not in (True, False, None):
    raise ValueError(
      f'{path}: use_rslora = {stabilised!r:.80} is neither true nor false'
    )
  root = math.sqrt(rank) if stabilised else 1.0
  return rank, float(alpha) * root


def _check_base(init: Any, path: str) -> None:
  """Raises ValueError for adapters of a base that PEFT has changed.

  These methods move a part of each weight into the adapter: W = W' + s B A.
  """
  name = init.lower() if isinstance(init, str) else init
  if name in _PLAIN_BASE:
    return
  if not isinstance(name, str) or not name.startswith(_RESIDUAL_BASE):
    known = ', '.join(map(str, (*_PLAIN_BASE, *_RESIDUAL_BASE)))
    raise ValueError(
      f'{path}: init_lora_weights = {init!r:.80} is none of {known}'
    )
  convert = (
    'save it in PEFT with save_pretrained(..., '
    'path_initial_model_for_weight_conversion=INITIAL_ADAPTER), or '
  )
  if name.startswith(('loftq', 'lora_ga')):
    convert = ''
  raise ValueError(
    f'{path}: init_lora_weights = {init!r:.80} took a part of each weight of '
    'the base into the adapter, which is another model on the base as '
    f'released: {convert}merge it in PEFT with merge_and_unload and import the '
    'whole model. If the base that is imported is the changed one, as PEFT '
    'saved it, write true there'
  )


def _name(target: str, layer: int) -> str:
  """The name of an adapter's tensor; `{}` stands for A or B."""
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
