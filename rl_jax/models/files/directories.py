"""Directories that appear whole or not at all, JSON and tensor files."""

from collections.abc import Iterator, Mapping
import contextlib
import json
import os
import shutil
import tempfile
from typing import Any

import ml_dtypes  # noqa: F401  registers bfloat16 with numpy
import numpy as np

from rl_jax.models.files.optional import require

# A directory that holds one of these was written as a model and may go.
_MODEL_FILES = ('model.json', 'config.json')
FLOAT_TYPES = ('F64', 'F32', 'F16', 'BF16')


@contextlib.contextmanager
def replace_directory(directory: str) -> Iterator[str]:
  """Gives a temporary directory that takes the place of `directory` at exit.

  An exception leaves the old one as it was.

  Raises: ValueError if the old one has files but no model.
  """
  directory = os.path.abspath(directory)
  if os.path.exists(directory) and not _replaceable(directory):
    raise ValueError(f'{directory} exists and holds no model: not replaced')
  os.makedirs(os.path.dirname(directory), exist_ok=True)
  parent, name = os.path.split(directory)
  temporary = tempfile.mkdtemp(prefix=f'.{name}.', dir=parent)
  try:
    yield temporary
    for file in os.listdir(temporary):
      path = os.path.join(temporary, file)
      _sync(path)
      os.chmod(path, 0o644)  # temporary files are born private
    os.chmod(temporary, 0o755)
    old = temporary + '.old'
    # Renaming cannot replace a directory that has files.
    if os.path.exists(directory):
      os.rename(directory, old)
    os.rename(temporary, directory)
    shutil.rmtree(old, ignore_errors=True)
  finally:
    shutil.rmtree(temporary, ignore_errors=True)


def _replaceable(directory: str) -> bool:
  if not os.path.isdir(directory):
    return False
  names = os.listdir(directory)
  return not names or any(name in _MODEL_FILES for name in names)


def _sync(path: str) -> None:
  with open(path, 'rb') as file:
    os.fsync(file.fileno())


def write_json(directory: str, name: str, value: Mapping[str, Any]) -> None:
  """Writes readable JSON."""
  with open(os.path.join(directory, name), 'w', encoding='utf-8') as file:
    json.dump(value, file, indent=2, ensure_ascii=False)


def read_json(path: str) -> dict[str, Any]:
  """Reads a JSON object.

  Raises: ValueError naming the file if it is missing or damaged.
  """
  try:
    with open(path, encoding='utf-8') as file:
      return json.load(file)
  except FileNotFoundError:
    raise ValueError(f'{path} does not exist') from None
  except json.JSONDecodeError as error:
    raise ValueError(f'{path} is not JSON: {error}') from None


def save_tensors(
  directory: str,
  name: str,
  tensors: Mapping[str, np.ndarray],
  metadata: Mapping[str, str] | None = None,
) -> None:
  """Writes a safetensors file of contiguous arrays."""
  lib = require('safetensors.numpy', 'writing weights')
  lib.save_file(dict(tensors), os.path.join(directory, name), metadata=metadata)


def open_tensors(path: str) -> dict[str, Any]:
  """Views of the tensors of a safetensors file; indexing one reads it.

  Raises: ValueError naming the file, or the tensor that is not of floats.
  """
  lib = require('safetensors', 'reading weights')
  if not os.path.exists(path):
    raise ValueError(f'{path} does not exist')
  try:
    handle = lib.safe_open(path, framework='numpy')
  except lib.SafetensorError as error:
    raise ValueError(f'{path} is damaged: {error}') from error
  views = {name: handle.get_slice(name) for name in handle.keys()}
  for name, view in views.items():
    if view.get_dtype() not in FLOAT_TYPES:
      raise ValueError(
        f'{name} ({path}) has type {view.get_dtype()}, not one of '
        + ', '.join(FLOAT_TYPES)
      )
  return views
