"""Configurations as JSON, their digest, and the difference of two of them.

A class is written as `role.Name`, for example `losses.PPOClip` or
`config.RolloutConfig`. The role is for people; a class is read by its last word
alone, so that files stay readable when modules move, also those that hold a
whole module path (`rl_jax.losses.ppo_clip.PPOClip`), as written before roles.
"""

import dataclasses
import hashlib
import json
import sys
from typing import Any

from rl_jax import overrides

# Classes of earlier versions: name -> function of the encoded fields that gives
# the encoded value of today.
RENAMED = {
  'DescribedArithmetic': lambda fields: _described('Arithmetic', fields),
  'DescribedBandit': lambda fields: _described('Bandit', fields),
}


def to_json(config: Any) -> str:
  """The whole configuration as readable JSON, classes by role and name."""
  return json.dumps(_encode(config), indent=2) + '\n'


def from_json(text: str) -> Any:
  """Rebuilds what to_json wrote, of this version or an earlier one.

  Raises ValueError for a class that is not one of `known_classes`: nothing is
  imported because a file names it.
  """
  return _decode(json.loads(text), known_classes())


def digest(config: Any) -> str:
  """12 hexadecimal digits that tell configurations apart.

  The hash covers what differs from the defaults of the classes: of each object
  its class (name alone, without role or module) and those fields whose value is
  not the field's default, by name, in alphabetical order. So neither a new
  field with a default nor a moved file changes a digest; a renamed class or
  field does. Whoever changes a default changes what existing digests stand
  for: results of runs that took the old default are then to be removed.
  """
  text = json.dumps(_changes(config), sort_keys=True)
  return hashlib.sha256(text.encode()).hexdigest()[:12]


def known_classes() -> dict[str, type]:
  """Name -> class, of all that a configuration may hold.

  Those of this library, and those that modules of `configs` define which the
  program itself has imported. Raises ValueError if two share a name.
  """
  modules = (*overrides.PIECE_MODULES, *overrides.SECTION_MODULES)
  found = overrides.classes(modules)
  own = [name for name in sys.modules if name.startswith('configs.')]
  for name, cls in overrides.classes(own).items():
    if found.setdefault(name, cls) is not cls:
      raise ValueError(f'two classes of configurations are named {name!r}')
  return found


def role(cls: type) -> str:
  """What a class is for: its folder below rl_jax or rl_jax/pieces."""
  if getattr(cls, 'role', None) == 'shaping':
    return 'shaping'
  words = cls.__module__.split('.')
  return next((w for w in words if w not in ('rl_jax', 'pieces')), words[0])


def _encode(value):
  if dataclasses.is_dataclass(value):
    cls = type(value)
    fields = {f.name: _encode(getattr(value, f.name)) for f in _fields(value)}
    return {'class': f'{role(cls)}.{cls.__name__}', **fields}
  return _encode_plain(value, _encode)


def _changes(value):
  if not dataclasses.is_dataclass(value):
    return _encode_plain(value, _changes)
  found = {'class': type(value).__name__}
  for field in _fields(value):
    changed = _changes(getattr(value, field.name))
    if changed != _default(field):
      found[field.name] = changed
  return found


def _default(field):
  """The encoded default of a field; MISSING, which equals nothing, if none."""
  if field.default is not dataclasses.MISSING:
    return _changes(field.default)
  if field.default_factory is not dataclasses.MISSING:
    return _changes(field.default_factory())
  return dataclasses.MISSING


def _fields(value):
  return [f for f in dataclasses.fields(value) if f.init]


def _encode_plain(value, encode):
  if isinstance(value, (tuple, list)):
    return [encode(v) for v in value]
  if isinstance(value, dict):
    return {'class': 'dict', 'items': {k: encode(v) for k, v in value.items()}}
  if value is None or isinstance(value, (bool, int, float, str)):
    return value
  raise TypeError(f'cannot write {type(value).__name__} as JSON: {value!r}')


def _decode(value, classes):
  if isinstance(value, list):
    return tuple(_decode(v, classes) for v in value)
  if not isinstance(value, dict):
    return value
  fields = dict(value)
  path = str(fields.pop('class'))
  if path == 'dict':
    return {k: _decode(v, classes) for k, v in fields['items'].items()}
  name = path.rpartition('.')[2]
  if name in RENAMED:
    return _decode(RENAMED[name](fields), classes)
  if name not in classes:
    raise ValueError(
      f'refusing to build {path!r}: this version has no configuration class '
      f'{name!r}.{overrides.nearest(name, classes)}'
    )
  values = {key: _decode(v, classes) for key, v in fields.items()}
  return overrides.construct(classes[name], values)


def _described(name, fields):
  task = {'class': f'tasks.{name}', **fields}
  return {'class': 'tasks.Described', 'task': task}


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
