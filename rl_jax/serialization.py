"""Configurations as JSON, and the difference of two configurations."""

import dataclasses
import importlib
import json
from typing import Any

from rl_jax.overrides import construct


def to_json(config: Any) -> str:
  """The whole configuration as readable JSON, classes by import path."""
  return json.dumps(_encode(config), indent=2) + '\n'


def from_json(text: str) -> Any:
  """Rebuilds what to_json wrote; only classes of rl_jax and configs."""
  return _decode(json.loads(text))


def _encode(value):
  if dataclasses.is_dataclass(value):
    cls = type(value)
    fields = {
      f.name: _encode(getattr(value, f.name))
      for f in dataclasses.fields(value)
      if f.init
    }
    return {'class': f'{cls.__module__}.{cls.__qualname__}', **fields}
  if isinstance(value, (tuple, list)):
    return [_encode(v) for v in value]
  if isinstance(value, dict):
    return {'class': 'dict', 'items': {k: _encode(v) for k, v in value.items()}}
  if value is None or isinstance(value, (bool, int, float, str)):
    return value
  raise TypeError(f'cannot write {type(value).__name__} as JSON: {value!r}')


def _decode(value):
  if isinstance(value, list):
    return tuple(_decode(v) for v in value)
  if not isinstance(value, dict):
    return value
  fields = dict(value)
  path = fields.pop('class')
  if path == 'dict':
    return {k: _decode(v) for k, v in fields['items'].items()}
  module, _, name = path.rpartition('.')
  if module.split('.')[0] not in ('rl_jax', 'configs'):
    raise ValueError(f'refusing to build {path!r}: not a class of this project')
  try:
    cls = getattr(importlib.import_module(module), name)
  except (ImportError, AttributeError) as error:
    raise ValueError(f'{path!r} is not in this version: {error}') from error
  if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
    raise ValueError(f'refusing to build {path!r}: not a configuration class')
  return construct(cls, {k: _decode(v) for k, v in fields.items()})


def difference(left: Any, right: Any, path: str = '') -> list[str]:
  """Lines 'path: left -> right' where two configurations differ."""
  if type(left) is type(right) and dataclasses.is_dataclass(left):
    return [
      line
      for f in dataclasses.fields(left)
      for line in difference(
        getattr(left, f.name),
        getattr(right, f.name),
        f'{path}.{f.name}' if path else f.name,
      )
    ]
  if isinstance(left, tuple) and isinstance(right, tuple):
    if [type(x) for x in left] == [type(x) for x in right]:
      return [
        line
        for i, (a, b) in enumerate(zip(left, right, strict=True))
        for line in difference(a, b, f'{path}.{i}')
      ]
  return [] if left == right else [f'{path}: {left!r} -> {right!r}']
