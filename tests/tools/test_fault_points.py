"""The count of calls over the processes of a killed run."""

import importlib.util
import pathlib
import sys

import pytest

PATH = pathlib.Path(__file__).with_name('fault_points.py')


@pytest.fixture(name='points')
def _points(monkeypatch):
  """The module beside this file."""
  spec = importlib.util.spec_from_file_location('fault_points', PATH)
  module = importlib.util.module_from_spec(spec)
  monkeypatch.setitem(sys.modules, 'fault_points', module)
  spec.loader.exec_module(module)
  return module


def test_calls_that_have_a_line_and_are_made_again(points, tmp_path):
  """One was killed before its line, which is allowed, and one after it."""
  calls = ['call 1 0 0 reset 7', 'call 1 1 0 reset 7', 'line 1 1 0 reset 7']
  path = tmp_path / points.CALLS
  path.write_text('\n'.join([*calls, 'call 1 0 0 reset 7']))
  assert points.made_twice(tmp_path) == (2, 1, [])
  path.write_text('\n'.join([*calls, 'call 1 1 0 reset 7']))
  assert points.made_twice(tmp_path) == (2, 1, ['1 1 0 reset 7'])
  assert points.made_twice(tmp_path / 'none') == (0, 0, [])


def test_a_line_that_went_with_its_file_is_none(points, tmp_path):
  """Files have rounds 0 to 63, 64 to 127 and so on; both calls are repeated."""
  calls = ['call 1 0 0 reset 7', 'line 1 0 0 reset 7']
  calls += ['call 64 0 0 reset 7', 'line 64 0 0 reset 7', 'gone 64']
  again = ['call 1 0 0 reset 7', 'call 64 0 0 reset 7']
  path = tmp_path / points.CALLS
  path.write_text('\n'.join([*calls, *again]))
  assert points.made_twice(tmp_path) == (2, 2, ['64 0 0 reset 7'])


@pytest.mark.parametrize('episodes', [False, True])
def test_every_point_names_a_function(points, episodes):
  """Functions of points are found where they are looked for."""
  for fault in points.faults(episodes=episodes, host=episodes):
    for target in filter(None, (fault.target, fault.within)):
      owner, name = points._resolve(target)
      assert callable(getattr(owner, name)), target
