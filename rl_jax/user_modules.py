"""The user's own modules, by file or by name; no file of a run can load one.

`load('my_task.py')` makes a module with the name of the file, wherever the file
is; modules beside it can be imported in it, as in a script. Classes and
functions of such a file are recorded in experiment.json by module name, path
and hash of the content, those of an installed module by its name only.
"""

import ast
from collections.abc import Callable, Generator, Mapping
import contextlib
import dataclasses
import glob
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import re
import sys
import traceback
import types
from typing import Any, ClassVar

from rl_jax.former_names import RENAMED


@dataclasses.dataclass(frozen=True)
class UserFile:
  """A file that was loaded as a module."""

  path: str
  sha256: str  # of the content that was run


class NamesCode:
  """Base of what names modules or functions of the user in its fields."""

  @property
  def code_modules(self) -> tuple[str, ...]:
    """Modules of functions that fields name, whose files are recorded."""
    return ()

  def supports(self, name: str) -> bool:
    """Returns whether a task has the optional method; see tasks.Task."""
    del name
    return False


class NotImported:
  """Base of what stands for an object whose code has not been imported."""

  why: ClassVar[str]  # the text of the error


# What an import of the library lacks: a module, or a name in one.
_MISSING = re.compile(
  r"^No module named '(rl_jax\.[\w.]+)'"
  r"|^cannot import name '(\w+)' from 'rl_jax\b"
)
_MOST_FILES = 200  # of a folder, in which a class is looked for

_files: dict[str, UserFile] = {}  # by module name
_named: set[str] = set()  # importable modules that the user has named
_loading: list[str] = []  # folders of the files that are being run
_refusing: list[bool] = []  # not empty: nothing may be loaded


def add(text: str) -> types.ModuleType:
  """Imports what --import names: PATH.py, or a module like my_package.my_task.

  Raises:
    FileNotFoundError: there is no such file.
    ValueError: it cannot be imported; the message says where and why.
  """
  if text.endswith('.py') or os.sep in text:
    return load(text)
  _check_allowed(text)
  module = _imported(text, text)
  _named.add(text)
  return module


def load(path: str) -> types.ModuleType:
  """The module of a file; the same one as before if its content is the same.

  Raises: as `add`.
  """
  full = os.path.realpath(path)
  if full == _script():
    _main_name()
    return sys.modules['__main__']
  found = _loaded_from(full)
  if found is None or _files[found].sha256 != _hash(full):
    _check_allowed(path)
  if not os.path.isfile(full):
    raise FileNotFoundError(f'{path}: no such file')
  if found is None:
    found = _free_name(full)
  elif _files[found].sha256 != _hash(full):
    sys.modules.pop(found, None)
  register({found: UserFile(full, _hash(full))})
  try:
    module = _imported(found, path)
  except ValueError:
    _files.pop(found)
    raise
  folder = os.path.dirname(full)
  if folder not in sys.path:
    sys.path.append(folder)  # last: it hides nothing that is installed
  return module


def register(files: Mapping[str, UserFile]) -> None:
  """Makes `import NAME` find these files, also in unpickling."""
  if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
    sys.meta_path.insert(0, _Finder())
  _files.update(files)


def files() -> dict[str, UserFile]:
  """All files that were loaded, by module name, for another process."""
  return dict(_files)


def defining(name: str) -> str | None:
  """A file of the working directory that defines a class of that name.

  It is read, not run; None: there is none.
  """
  for path in sorted(glob.glob('*.py'))[:_MOST_FILES]:
    with contextlib.suppress(OSError, UnicodeDecodeError):
      with open(path, encoding='utf-8') as file:
        if re.search(rf'^class {re.escape(name)}\b', file.read(), re.M):
          return path
  return None


def names() -> list[str]:
  """Modules whose classes and functions a configuration may name."""
  found = [*_named, *_files, '__main__']
  return [name for name in found if name in sys.modules]


def is_known(module: str) -> bool:
  """Returns whether the user has named a module, or runs it as a program."""
  return module in names() or module == _main_module()


@contextlib.contextmanager
def refused() -> Generator[None]:
  """Within it nothing is loaded that the user has not named before."""
  _refusing.append(True)
  try:
    yield
  finally:
    _refusing.pop()


def origin(module: str) -> tuple[str, UserFile | None]:
  """(name to record for a module, its file or None if the name suffices).

  A script is recorded as the file that it is. Raises ValueError for what is
  typed into an interactive session: nothing could read it again.
  """
  if module == '__main__':
    module = _main_name()
  if module in _files:
    return module, _files[module]
  path = _path(module)
  folders = {os.path.dirname(file.path) for file in _files.values()}
  if path and '.' not in module and os.path.dirname(path) in folders:
    return module, UserFile(path, _hash(path))  # beside a user's file
  return module, None


def file_of(module: str) -> UserFile | None:
  """The file of an imported module, also of one that is known by its name."""
  name, file = origin(module)
  path = _path(name)
  return file or (UserFile(path, _hash(path)) if path else None)


def beside(file: UserFile) -> dict[str, str]:
  """Module -> sha256 of the files beside a user's file that it imports.

  Those that they import, too, wherever in the code the import is.
  """
  folder = os.path.dirname(os.path.realpath(file.path))
  found: dict[str, str] = {}
  rest = [file.path]
  while rest:
    for name in _imports(rest.pop()):
      path = _path(name) or ''
      path = os.path.realpath(path)
      other = os.path.dirname(path) == folder and path != file.path
      if other and name not in found:
        known = _files.get(name)
        found[name] = known.sha256 if known else _hash(path)
        rest.append(path)
  return dict(sorted(found.items()))


def check_importable(thing: Any) -> None:
  """Raises ValueError unless a class or function can be found again by name."""
  name, what = thing.__qualname__, f'{thing.__module__}.{thing.__qualname__}'
  if not name.isidentifier():
    raise ValueError(f'{what} is not defined at the top level of a module')
  origin(thing.__module__)
  module = sys.modules.get(thing.__module__)
  if not (_spec(thing.__module__) or _path(thing.__module__)):
    raise ValueError(f'{what} is in no module that can be imported')
  if getattr(module, name, None) is not thing:
    raise ValueError(
      f'{what} is another object by now: was its module loaded again?'
    )


def reference(function: Any) -> str:
  """'module:function' of PATH.py:NAME, MODULE:NAME or a function itself.

  Loads the module. Raises ValueError if it has no such function.
  """
  if not isinstance(function, str):
    if not isinstance(function, types.FunctionType):
      raise ValueError(f'{function!r} is not a function')
    check_importable(function)
    name, _ = origin(function.__module__)
    _named.add(name)
    return f'{name}:{function.__qualname__}'
  place, colon, name = function.rpartition(':')
  if not colon or not name.isidentifier():
    raise ValueError(f'{function!r}: expected PATH.py:FUNCTION')
  module = place if is_known(place) else add(place).__name__
  try:
    found = resolve(f'{module}:{name}')
  except ValueError:
    of_module = vars(sys.modules[module]).items()
    own = [x for x, y in of_module if isinstance(y, types.FunctionType)]
    raise ValueError(
      f'{place} has no function {name}, but {", ".join(own) or "none"}'
    ) from None
  if not callable(found):
    raise ValueError(f'{function!r} is not a function')
  return f'{module}:{name}'


def resolve(text: str) -> Callable[..., Any]:
  """The function of 'module:function', which `reference` returned."""
  module, _, name = text.partition(':')
  if module not in sys.modules and module == _main_module():
    module = '__main__'
  found = getattr(importlib.import_module(module), name, None)
  if found is None:
    raise ValueError(f'{module} has no function {name}')
  return found


class _Finder(importlib.abc.MetaPathFinder):
  """Finds registered files, and those beside a file that is being run."""

  def find_spec(self, fullname, path=None, target=None):
    if fullname not in _files:
      if not _loading or '.' in fullname:
        return None
      beside = os.path.join(_loading[-1], f'{fullname}.py')
      if fullname in sys.stdlib_module_names or not os.path.isfile(beside):
        return None
      _files[fullname] = UserFile(beside, _hash(beside))
    loader = _Loader(fullname, _files[fullname].path)
    return importlib.util.spec_from_file_location(
      fullname, loader.path, loader=loader
    )


class _Loader(importlib.machinery.SourceFileLoader):
  """Compiles exactly the content that is recorded, and caches nothing."""

  def get_code(self, fullname):
    content = self.get_data(self.path)
    if hashlib.sha256(content).hexdigest() != _files[fullname].sha256:
      raise ImportError(f'{self.path} has changed since the run began')
    return self.source_to_code(content, self.path)

  def exec_module(self, module):
    _loading.append(os.path.dirname(self.path))
    try:
      super().exec_module(module)
    finally:
      _loading.pop()


def _imports(path):
  """Names of modules without a package that a file imports."""
  try:
    with open(path, 'rb') as file:
      tree = ast.parse(file.read())
  except (OSError, SyntaxError, ValueError):
    return
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
      yield node.module


def _imported(name, typed):
  try:
    return importlib.import_module(name)
  except (Exception, SystemExit) as error:  # of the user's code
    where = ''
    if isinstance(error, SyntaxError):
      where = f' ({error.filename}:{error.lineno})'
    else:
      own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(('<', os.path.dirname(__file__)))
        and os.path.dirname(importlib.__file__) not in frame.filename
      ]
      where = f' ({own[-1].filename}:{own[-1].lineno})' if own else ''
    text = error.msg if isinstance(error, ImportError | SyntaxError) else error
    raise ValueError(
      f'{typed} cannot be imported: {type(error).__name__}: {text}{where}'
      f'{_where_today(error)}'
    ) from error


_NEW = 'control'  # a folder into which nothing has moved


def _where_today(error):
  """Returns where a module or class of an earlier version is today, or ''."""
  if not isinstance(error, ImportError):
    return ''
  missing = _MISSING.search(str(error))
  if not missing:
    return ''
  name = (missing[1] or missing[2]).rpartition('.')[2]
  name = RENAMED.get(name, name)
  root = os.path.dirname(os.path.abspath(__file__))
  found = []
  for path in sorted(glob.glob(f'{root}/**/*.py', recursive=True)):
    module = path.removeprefix(os.path.dirname(root) + os.sep)
    module = module.removesuffix('.py').replace(os.sep, '.')
    if f'.{_NEW}.' in module:
      continue
    with open(path, encoding='utf-8') as file:
      if re.search(rf'^class {name}\b', file.read(), re.M):
        found.append(f'{module}.{name}')
    if module.endswith(f'.{name}'):
      found.append(module)
  return f'; today it is {" or ".join(found)}' if found else ''


def _check_allowed(typed):
  if _refusing:
    raise ValueError(
      f'nothing is imported because a file names it: add --import={typed}'
    )


def _loaded_from(full):
  """The name of the module that a file was loaded as, or None."""
  for name, file in _files.items():
    if file.path == full:
      return name
  return None


def _free_name(full):
  """The file's own name, or another if a module in reach has it."""
  stem = os.path.basename(full).removesuffix('.py')
  stem = stem if stem.isidentifier() else f'file_{_hash(full)[:8]}'
  names = (stem, f'user_{stem}', f'{stem}_{_hash(full)[:8]}')
  return next((name for name in names if _is_free(name, full)), names[-1])


def _is_free(name, full):
  try:
    spec = importlib.util.find_spec(name)
  except (ValueError, ImportError):
    return False
  if spec is None or (spec.origin is None and spec.submodule_search_locations):
    return True  # a folder without __init__.py gives way to any module
  return spec.origin is not None and os.path.realpath(spec.origin) == full


def _main_name() -> str:
  """Returns what a program's main module is recorded as; ValueError without a
  file.
  """
  name = _main_module()
  if name is None:
    raise ValueError(
      'what is defined in an interactive session cannot be restored later: '
      'write it to a file, for example my_task.py, and import that'
    )
  return name


def _main_module() -> str | None:
  """The same; None in an interactive session."""
  spec = _spec('__main__')
  if spec is not None:
    return spec.name
  full = _script()
  if full is None:
    return None
  if (name := _loaded_from(full)) is None:
    name = _free_name(full)
    register({name: UserFile(full, _hash(full))})
  return name


def _script() -> str | None:
  """The file that Python was started with, or None."""
  path = _path('__main__')
  if _spec('__main__') or not path or not os.path.isfile(path):
    return None
  return os.path.realpath(path)


def _path(module):
  """The file of an imported module; None if it has none, or is not there."""
  return getattr(sys.modules.get(module), '__file__', None)


def _spec(module):
  """Returns how a module was found; None for a script, or if it is not
  there.
  """
  return getattr(sys.modules.get(module), '__spec__', None)


def _hash(path):
  try:
    with open(path, 'rb') as file:
      return hashlib.sha256(file.read()).hexdigest()
  except OSError:
    return ''
