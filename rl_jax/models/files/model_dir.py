"""Models on disk: our own directories, and one loader for every format.

A model directory holds model.json (the ModelConfig), weights.safetensors (the
parameter tree, leaves named by their path), or shards of that file with their
index, and the tokenizer's files.
"""

from collections.abc import Callable, Mapping
import dataclasses
import os
from typing import Any

from flax import traverse_util

from rl_jax import serialization
from rl_jax.models.files import (
  directories,
  gguf_import,
  hf_import,
  placement,
  tensor_table,
)
from rl_jax.models.files.tokenizer_files import load_tokenizer, save_tokenizer
from rl_jax.models.tokenizer import Tokenizer, check_vocabulary
from rl_jax.models.transformer import ModelConfig, specs

CONFIG, STEM = 'model.json', 'weights'


def save_model(
  directory: str,
  cfg: ModelConfig,
  params: Mapping[str, Any],
  tokenizer: Tokenizer,
) -> None:
  """Writes a model directory; a killed process leaves the old one.

  Adapters and value head are kept as they are.

  Raises: ValueError if params and cfg do not fit, or if the directory exists
    and holds files that would be lost (see replace_directory).
  """
  flat: dict[str, Any] = traverse_util.flatten_dict(dict(params), sep='/')
  expected = traverse_util.flatten_dict(specs(cfg), sep='/')
  _check_leaves(expected, {k: v.shape for k, v in flat.items()}, 'params')
  check_vocabulary(tokenizer, cfg.vocab_size, directory)
  with directories.replace_directory(directory) as temporary:
    _write_config(temporary, cfg)
    tensors = ((k, directories.host_copy(v)) for k, v in flat.items())
    directories.save_shards(temporary, STEM, tensors)
    save_tokenizer(tokenizer, temporary)


def save_description(
  directory: str, cfg: ModelConfig, tokenizer: Tokenizer
) -> None:
  """Writes model.json and the tokenizer's files: a model without weights."""
  check_vocabulary(tokenizer, cfg.vocab_size, directory)
  with directories.replace_directory(directory) as temporary:
    _write_config(temporary, cfg)
    save_tokenizer(tokenizer, temporary)


def load_description(directory: str) -> tuple[ModelConfig, Tokenizer] | None:
  """Returns what save_description wrote, or None if it wrote nothing there."""
  if not os.path.exists(os.path.join(directory, CONFIG)):
    return None
  return _own_config(directory), load_tokenizer(directory)


def load_model(
  directory: str, mesh: Any = None, **overrides
) -> tuple[ModelConfig, dict[str, Any], Tokenizer]:
  """Reads a model directory, each tensor straight to its devices.

  Args:
    directory: what save_model wrote.
    mesh: where to place the parameters; None is the default device.
    **overrides: fields of ModelConfig (compute_dtype, param_dtype, remat).

  Raises: ValueError naming the file or tensor that does not fit.
  """
  cfg = dataclasses.replace(_own_config(directory), **overrides)
  tokenizer = load_tokenizer(directory)
  check_vocabulary(tokenizer, cfg.vocab_size, directory)
  views, paths = {}, directories.tensor_files(directory, STEM)
  for path in paths:
    views |= directories.open_tensors(path)
  expected = traverse_util.flatten_dict(specs(cfg), sep='/')
  shapes = {k: tuple(v.get_shape()) for k, v in views.items()}
  origin = paths[0] if len(paths) == 1 else directory
  _check_leaves(expected, shapes, origin)
  readers = {k: _reader(view) for k, view in views.items()}
  params = tensor_table.fill(cfg, readers, mesh, origin)
  return cfg, params, tokenizer


def load_any(
  source: str, mesh: Any = None, **overrides
) -> tuple[ModelConfig, dict[str, Any], Tokenizer]:
  """Loads a model directory, a Hugging Face directory or a GGUF file."""
  return loader_of(source)(source, mesh, **overrides)


def loader_of(source: str) -> Callable[..., Any]:
  """The function that loads it; raises ValueError if it is not a model."""
  if os.path.isfile(source) and source.endswith('.gguf'):
    return gguf_import.import_gguf
  if os.path.exists(os.path.join(source, CONFIG)):
    return load_model
  if os.path.exists(os.path.join(source, 'config.json')):
    return hf_import.import_hf
  if os.path.exists(os.path.join(source, 'adapter_config.json')):
    raise ValueError(
      f'{source} has adapters of PEFT and no model: join them to the model '
      'that they change by python -m experiments.import_weights --source=MODEL '
      f'--adapters={source} --out=DIR'
    )
  raise ValueError(
    f'{source} is not a model: neither a .gguf file nor a directory with '
    f'{CONFIG} (ours) or config.json (Hugging Face)'
  )


def read_config(source: str) -> ModelConfig | None:
  """The ModelConfig of a directory, ours or Hugging Face's; else None."""
  if os.path.exists(os.path.join(source, CONFIG)):
    return _own_config(source)
  path = os.path.join(source, 'config.json')
  if os.path.exists(path):
    return hf_import.config_from_hf(directories.read_json(path), path)
  return None


def _write_config(directory: str, cfg: ModelConfig) -> None:
  path = os.path.join(directory, CONFIG)
  with open(path, 'w', encoding='utf-8') as file:
    file.write(serialization.to_json(cfg))


def _own_config(directory: str) -> ModelConfig:
  path = os.path.join(directory, CONFIG)
  text = directories.read_text(path)
  try:
    cfg = serialization.from_json(text)
  except (
    *(ValueError, LookupError, TypeError, AttributeError, RecursionError),
  ) as error:
    raise ValueError(f'{path} is damaged: {error}') from error
  if not isinstance(cfg, ModelConfig):
    raise ValueError(f'{path} is damaged: it holds no ModelConfig')
  return cfg


def _reader(view) -> placement.LeafReader:
  # Scalars have no axis to slice.
  def read(index):
    return view[index] if index else view[()]

  return placement.LeafReader(read, tuple(range(len(view.get_shape()))))


def _check_leaves(expected, shapes: Mapping[str, tuple], origin: str) -> None:
  problems = [f'{name} is missing' for name in expected if name not in shapes]
  for name, shape in shapes.items():
    if name not in expected:
      problems.append(f'{name} has no place in the model')
    elif tuple(expected[name].shape) != tuple(shape):
      problems.append(
        f'{name} has shape {tuple(shape)}, not {tuple(expected[name].shape)}'
      )
  if problems:
    raise ValueError(
      f'{origin} does not fit the model:\n  ' + '\n  '.join(problems)
    )
