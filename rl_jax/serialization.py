"""Configurations as JSON, their digest, and the difference of two of them.

A class is written as `role.Name`, for example `losses.PPOClip` or
`config.RolloutConfig`. The role is for people; a class is read by its last word
only, so that files stay readable when modules move, also those that hold a
whole module path (`rl_jax.losses.ppo_clip.PPOClip`), as written before roles.

A class of the user is written as `module.Name`. What was loaded from a file has
beside it `from`: {module: {path, sha256, beside}}; no field can have that name.
`beside`: module -> sha256, of the files in its folder that it imports.
"""

from collections.abc import Iterable, Iterator
import dataclasses
import functools
import hashlib
import json
import os
import sys
from typing import Any, ClassVar

from rl_jax import overrides, user_modules

_HISTORY = 'history'  # beside the fields of a configuration
# Classes of earlier versions that are another value now: name -> function of
# the encoded fields that gives the encoded value of today. Those that only have
# another name are in `former_names.RENAMED`.
REPLACED = {
  'DescribedArithmetic': lambda fields: _described('Arithmetic', fields),
  'DescribedBandit': lambda fields: _described('Bandit', fields),
}
# Defaults of earlier versions, of fields that change no result: in a digest
# they count as the default of today.
FORMER_DEFAULTS = {
  ('MeshConfig', 'data'): 1,
  ('VerifierConfig', 'num_workers'): 0,
}

# What fields of later versions meant to runs whose files lack them, where it is
# not the default of today.
ABSENT = {'DraftModel': {'coupling': 'uniform'}}

_YOURS = ' If it is yours: nothing is imported because a file names it, so add'


class StandIn(user_modules.NotImported):
  """An object of a class of the user whose code has not been imported.

  It has the class's name and the recorded fields. Whatever else is asked of it
  is code that would have to run: that raises ValueError, which says what to
  import.
  """

  recorded_class: ClassVar[str]  # as in the file
  recorded_files: ClassVar[dict[str, Any]]
  why: ClassVar[str]  # the text of the error

  def __getattr__(self, name: str) -> Any:
    if name.startswith('__'):
      raise AttributeError(name)
    raise ValueError(self.why)

  def __call__(self, *args: Any, **kwargs: Any) -> Any:
    raise ValueError(self.why)


def to_json(config: Any) -> str:
  """The whole configuration as readable JSON, classes by role and name."""
  return with_history(config, [])


def from_json(
  text: str, more: Iterable[type] = (), *, stand_ins: bool = False
) -> Any:
  """Rebuilds what to_json wrote, of this version or an earlier one.

  Raises ValueError for a class that is neither one of `known_classes` nor of
  `more`: nothing is imported because a file names it. With stand_ins objects of
  classes of the user become a StandIn instead. What `with_history` adds is left
  out.
  """
  known = known_classes() | {cls.__name__: cls for cls in more}
  value = json.loads(text)
  if isinstance(value, dict):
    value.pop(_HISTORY, None)
  recorded = {module: file for _, module, file in _recorded(value, '')}
  with user_modules.refused():
    return _Decoder(known, recorded, stand_ins).decode(value)


def with_history(config: Any, changes: list[dict[str, Any]]) -> str:
  """`to_json`, and beside the configuration how it was changed on purpose."""
  fields = _encode(config)
  if changes:
    fields[_HISTORY] = changes
  return json.dumps(fields, indent=2) + '\n'


def history(text: str) -> list[dict[str, Any]]:
  """Returns what `with_history` recorded; [] if nothing.

  Raises: ValueError if it is not a list of changes.
  """
  found = json.loads(text).get(_HISTORY, [])
  whole = isinstance(found, list) and all(
    isinstance(entry, dict)
    and type(entry.get('iteration')) is int
    and isinstance(entry.get('changes'), list)
    and all(isinstance(line, str) for line in entry['changes'])
    for entry in found
  )
  if not whole:
    raise ValueError(f'{_HISTORY} is not a list of changes: {found!r:.80}')
  return found


def read(
  path: str, more: Iterable[type] = (), *, stand_ins: bool = False
) -> Any:
  """`from_json` of a file.

  Raises: ValueError that begins with the path, on one line.
  """
  try:
    with open(path, encoding='utf-8') as file:
      return from_json(file.read(), more, stand_ins=stand_ins)
  except (json.JSONDecodeError, UnicodeDecodeError) as error:
    raise ValueError(f'{path} is damaged: {error}') from error
  except (LookupError, TypeError, AttributeError, RecursionError) as error:
    raise ValueError(
      f'{path} is damaged: {type(error).__name__}: {error}'
    ) from error
  except ValueError as error:
    raise ValueError(f'{path}: {error}') from error


def check(config: Any) -> None:
  """Raises ValueError for what could not be read back from JSON later.

  That is a plain value of another type, and a class that has no name to find
  it by; and for a value that is not of the type that a field of this library
  has. The message has the path of the field.
  """
  for path, value in _walk(config, ''):
    if isinstance(value, type) and dataclasses.is_dataclass(value):
      name = value.__name__
      raise ValueError(f'{path}: {name} is a class: write {name}()')
  library = None
  for path, value in _walk(config, ''):
    cls = type(value)
    if dataclasses.is_dataclass(value) and _is_own(cls):
      overrides.check_types(value, path)
    try:
      if dataclasses.is_dataclass(value) and not _is_own(cls):
        _check_class(cls)
        library = library or _library()
        if library.get(cls.__name__, cls) is not cls:
          raise ValueError(f'{cls.__name__} is a name of rl_jax: rename it')
      elif not isinstance(value, (dict, tuple, list)):
        _encode(value)
      elif isinstance(value, dict) and any(type(k) is not str for k in value):
        raise ValueError('only dicts with text as keys can be recorded')
    except (TypeError, ValueError) as error:
      what = f'{path}: ' if path else ''
      raise ValueError(f'{what}{error}') from None


def classes_of(config: Any) -> list[type]:
  """The classes of all objects in a configuration."""
  found = (type(value) for _, value in _walk(config, ''))
  return [cls for cls in found if dataclasses.is_dataclass(cls)]


def changed_files(text: str, *, imported: bool = False) -> list[str]:
  """Lines 'path: sha256 saved -> sha256 now (file)' of code that changed.

  imported: of modules that the user has named in this process, no others.
  """
  lines, now = {}, {file.sha256 for file in user_modules.files().values()}
  for path, module, was in _recorded(json.loads(text), ''):
    if imported and not user_modules.is_known(module):
      continue
    folder = os.path.dirname(was['path'])
    saved = {module: was['sha256'], **was.get('beside', {})}
    for name, sha256 in saved.items():
      file = user_modules.file_of(name)
      if sha256 in now or (file and file.sha256 == sha256) or name in lines:
        continue
      new = f'sha256 {file.sha256[:12]}' if file else 'not imported'
      place = file.path if file else os.path.join(folder, f'{name}.py')
      lines[name] = f'{path}: sha256 {sha256[:12]} -> {new} ({place})'
  return list(lines.values())


def digest(config: Any) -> str:
  """12 hexadecimal digits that tell configurations apart.

  The hash covers what differs from the defaults of the classes: of each object
  its class (name only, without role or module) and those fields whose value is
  not the field's default, by name, in alphabetical order. So neither a new
  field with a default nor a moved file changes a digest. Nor does a renamed
  class or field whose former name is in `former_names.RENAMED`: that is hashed.
  Whoever changes a default changes what existing digests stand for: results of
  runs that took the old default are then to be removed.
  """
  text = json.dumps(_changes(config), sort_keys=True)
  return hashlib.sha256(text.encode()).hexdigest()[:12]


def known_classes() -> dict[str, type]:
  """Name -> class, of all that a configuration may hold.

  Those of this library, and those that modules of `configs` define which the
  program itself has imported, or modules that the user has named. Raises
  ValueError if two share a name.
  """
  configs = [name for name in sys.modules if name.startswith('configs.')]
  modules = (*overrides.PIECE_MODULES, *overrides.SECTION_MODULES, *configs)
  return overrides.classes((*modules, *user_modules.names()))


def _library():
  modules = (*overrides.PIECE_MODULES, *overrides.SECTION_MODULES)
  return overrides.classes(modules)


def role(cls: type) -> str:
  """Returns what a class is for: its folder below rl_jax or rl_jax/pieces."""
  words = cls.__module__.split('.')
  return next((w for w in words if w not in ('rl_jax', 'pieces')), words[0])


def _encode(value):
  if isinstance(value, StandIn):
    fields = {name: _encode(x) for name, x in _values(value).items()}
    where = {'from': value.recorded_files} if value.recorded_files else {}
    return {'class': value.recorded_class, **where, **fields}
  if dataclasses.is_dataclass(value):
    cls = type(value)
    fields = {name: _encode(x) for name, x in _values(value).items()}
    files = {
      name: dataclasses.asdict(f) | {'beside': user_modules.beside(f)}
      for name, f in _files_of(value)
    }
    where = {'from': files} if files else {}
    return {'class': f'{_place(cls)}.{cls.__name__}', **where, **fields}
  return _encode_plain(value, _encode)


def _is_own(cls):
  return cls.__module__.split('.')[0] == 'rl_jax'


def _place(cls):
  return role(cls) if _is_own(cls) else user_modules.origin(cls.__module__)[0]


def _files_of(value):
  """(module, file) of an object's class, and of functions that it names."""
  names = isinstance(value, user_modules.NamesCode)
  modules = [*value.code_modules] if names else []
  if not _is_own(type(value)):
    modules.append(type(value).__module__)
  found = (user_modules.origin(module) for module in modules)
  return [(name, file) for name, file in found if file]


def _check_class(cls):
  user_modules.check_importable(cls)
  if not cls.__dataclass_params__.frozen:
    raise ValueError(
      f'{cls.__name__} is not frozen: write @dataclasses.dataclass(frozen=True)'
    )


def _walk(value, path) -> Iterator[tuple[str, Any]]:
  """(path, value) of a tree of dataclasses, containers and plain values."""
  yield path, value
  if dataclasses.is_dataclass(value):
    below = _values(value).items()
  elif isinstance(value, dict):
    below = value.items()
  else:
    below = enumerate(value) if isinstance(value, (tuple, list)) else ()
  for key, part in below:
    yield from _walk(part, f'{path}.{key}' if path else str(key))


def _recorded(value, path):
  """(path of an object, module, its file) of all user files in JSON."""
  if isinstance(value, list):
    value = {str(index): part for index, part in enumerate(value)}
  elif not isinstance(value, dict):
    return
  elif value.get('class') == 'dict':
    value = value['items']
  elif 'class' in value:
    for module, file in value.get('from', {}).items():
      yield path, module, file
  for key, part in value.items():
    if key != 'from':
      yield from _recorded(part, f'{path}.{key}' if path else key)


def _changes(value):
  if isinstance(value, StandIn):
    raise ValueError(value.why)  # its defaults are unknown
  if not dataclasses.is_dataclass(value):
    return _encode_plain(value, _changes)
  name = type(value).__name__
  found: dict[str, Any] = {'class': _former(name)}
  if files := [file for _, file in _files_of(value)]:
    hashes = {file.sha256 for file in files}
    for file in files:
      hashes.update(user_modules.beside(file).values())
    found['from'] = sorted(hashes)
  values = _values(value)
  for field in _fields(value):
    changed = _changes(values[field.name])
    default = _default(field)
    former = FORMER_DEFAULTS.get((name, field.name), default)
    if changed not in (default, former):
      found[_former((name, field.name))] = changed
  return found


def _former(today):
  """The first name of a class, or of a field (class, name)."""
  for former, name in overrides.RENAMED.items():
    if isinstance(former, str) and name == today:
      return former
    if isinstance(former, tuple) and (former[0], name) == today:
      return former[1]
  return today if isinstance(today, str) else today[1]


def _default(field):
  """The encoded default of a field; MISSING, which equals nothing, if none."""
  if field.default is not dataclasses.MISSING:
    return _changes(field.default)
  if field.default_factory is not dataclasses.MISSING:
    return _changes(field.default_factory())
  return dataclasses.MISSING


def _fields(value):
  return [f for f in dataclasses.fields(value) if f.init]


def _values(value):
  """The fields by name."""
  return {f.name: getattr(value, f.name) for f in _fields(value)}


def _encode_plain(value, encode):
  if isinstance(value, (tuple, list)):
    return [encode(v) for v in value]
  if isinstance(value, dict):
    return {'class': 'dict', 'items': {k: encode(v) for k, v in value.items()}}
  if value is None or isinstance(value, (bool, int, float, str)):
    return value
  hint = ''
  if callable(value):
    hint = '; a function of the user is given as text: tasks.RewardFunctions'
  elif isinstance(value, user_modules.NamesCode):  # a task
    hint = '; write @dataclasses.dataclass(frozen=True) above its class'
  raise TypeError(
    f'cannot write {type(value).__name__} as JSON: {value!r}{hint}'
  )


class _Decoder:
  """Rebuilds values of JSON from classes by name; see from_json."""

  def __init__(self, classes, recorded, stand_ins):
    self._classes, self._recorded = classes, recorded
    self._stand_ins = stand_ins

  def decode(self, value):
    """The value, its objects built."""
    if isinstance(value, list):
      return tuple(map(self.decode, value))
    if not isinstance(value, dict):
      return value
    fields = dict(value)
    path, files = str(fields.pop('class')), fields.pop('from', {})
    if path == 'dict':
      return {k: self.decode(v) for k, v in fields['items'].items()}
    name = path.rpartition('.')[2]
    if name in REPLACED:
      return self.decode(REPLACED[name](fields))
    name = overrides.class_today(name, self._classes)
    fields = {**ABSENT.get(name, {}), **fields}
    values = {key: self.decode(v) for key, v in fields.items()}
    if name in self._classes:
      values = overrides.fields_today(self._classes[name], values)
    try:
      self._check(path, name, files)
      return overrides.construct(self._classes[name], values)
    except ValueError as error:
      if not self._stand_ins or not self._is_of_user(path, name, files, values):
        raise
      return _stand_in(path, files, values, str(error))

  def _check(self, path, name, files):
    """Raises ValueError for a class, or functions, that are not known."""
    if name not in self._classes:
      raise ValueError(
        f'refusing to build {path!r}: this version has no configuration class '
        f'{name!r}.{_how_to_import(path, self._recorded, self._classes)}'
      )
    runs = {m for m in files if not path.startswith(f'{m}.')}
    if unknown := [m for m in sorted(runs) if not user_modules.is_known(m)]:
      raise ValueError(
        f'refusing to build {path!r}, which runs functions of {unknown[0]}.'
        + _how_to_import(f'{unknown[0]}.', self._recorded, self._classes)
      )

  def _is_of_user(self, path, name, files, values):
    """Returns whether it is the user's, or an object of ours that refuses such
    one.
    """
    module = path.rpartition('.')[0]
    if files or any(isinstance(x, StandIn) for _, x in _walk(values, '')):
      return True
    ours = module.split('.')[0] == 'rl_jax' or module in _roles(self._classes)
    return name not in self._classes and bool(module) and not ours


def _stand_in(path, files, values, why):
  return _stand_in_class(path, tuple(values), json.dumps(files), why)(**values)


@functools.lru_cache(maxsize=1024)  # equal objects are of one class
def _stand_in_class(path, names, files, why):
  cls = dataclasses.make_dataclass(
    path.rpartition('.')[2], names, bases=(StandIn,), frozen=True
  )
  cls.recorded_class, cls.recorded_files = path, json.loads(files)
  cls.why = why
  return cls


def _roles(classes):
  return {role(cls) for cls in classes.values() if _is_own(cls)}


def _how_to_import(path, recorded, classes):
  """Returns what to give so that a class of the user is known."""
  module, _, name = path.rpartition('.')
  if module in recorded:
    paths = [
      file['path']
      for name, file in recorded.items()
      if name == module or not user_modules.is_known(name)
    ]
    moved = '' if all(map(os.path.exists, paths)) else ' (or its new place)'
    return ' '.join([_YOURS, *(f'--import={path}' for path in paths)]) + moved
  ours = module in _roles(classes) or module.split('.')[0] == 'rl_jax'
  if not module or ours:
    return overrides.nearest(name, classes)
  return f'{_YOURS} --import={module}'


def _described(name, fields):
  task = {'class': f'tasks.{name}', **fields}
  return {'class': 'tasks.Described', 'task': task}


def difference(left: Any, right: Any, path: str = '') -> list[str]:
  """Lines 'path: left -> right' where two configurations differ."""
  if type(left) is type(right) and dataclasses.is_dataclass(left):
    return [
      line
      for name in _values(left)
      for line in difference(
        _values(left)[name],
        _values(right)[name],
        f'{path}.{name}' if path else name,
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
