"""Stand-ins of packages that are extras."""

import importlib.util
import pathlib
import sys

import pytest

STUBS = pathlib.Path(__file__).parents[2] / 'stubs'


@pytest.fixture
def stub(monkeypatch):
  """Name -> the stand-in of a package, which is imported in its place."""

  def load(name):
    spec = importlib.util.spec_from_file_location(name, STUBS / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, name, module)
    return module

  return load


@pytest.fixture(scope='module')
def packages():
  """Extras that are not installed are imported from the stand-ins."""
  sys.path.append(str(STUBS))
  yield
  sys.path.remove(str(STUBS))
  for name, module in list(sys.modules.items()):
    if str(getattr(module, '__file__', '')).startswith(str(STUBS)):
      del sys.modules[name]
