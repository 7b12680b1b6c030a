"""Packages that are imported where they are used, not with the library."""

import importlib
from typing import Any

# Import name -> what to give to pip, where the two differ.
PACKAGES = {
  'jinja2': 'Jinja2',
  'orbax': 'orbax-checkpoint',
}


def require(module: str, purpose: str) -> Any:
  """Imports a module, or says what to install and what for.

  Raises: ImportError naming the package.
  """
  try:
    return importlib.import_module(module)
  except ImportError as error:
    root = module.split('.')[0]
    package = PACKAGES.get(root, root)
    raise ImportError(
      f'{purpose} needs the package {package!r}: pip install {package}'
    ) from error
