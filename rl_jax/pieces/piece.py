"""The decorator of pieces, and the function that finds those of a folder.

A piece is a frozen dataclass of hyperparameters. Float fields are leaves of its
pytree, so that new values need no new compilation; all others are static. Its
`role` names its place in a Method.
"""

from collections.abc import Iterable
import dataclasses
import importlib
import pkgutil

from flax import struct

from rl_jax.checks import checked


def piece(cls: type) -> type:
  """Class decorator: a frozen dataclass and pytree with checked fields.

  Fields with ranges and choices are written by `checks.ranged` and
  `checks.chosen`; construction raises ValueError for values outside.
  """
  return struct.dataclass(checked(cls), kw_only=True)


def pieces_of(package: str, path: Iterable[str]) -> dict[str, type]:
  """Name -> class of all public dataclasses that the package's files define.

  A package calls it in its `__init__.py`, so that a new file is found without
  being listed: `globals().update(pieces_of(__name__, __path__))`.

  Raises:
    ValueError: two files define a class of the same name.
  """
  found: dict[str, type] = {}
  for info in pkgutil.iter_modules(path):
    module = importlib.import_module(f'{package}.{info.name}')
    for name, value in vars(module).items():
      is_own = getattr(value, '__module__', None) == module.__name__
      if name.startswith('_') or not is_own or not isinstance(value, type):
        continue
      if not dataclasses.is_dataclass(value):
        continue
      if name in found:
        raise ValueError(
          f'{found[name].__module__} and {module.__name__} both define {name}'
        )
      found[name] = value
  return found
