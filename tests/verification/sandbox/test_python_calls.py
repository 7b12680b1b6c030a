"""Values, errors and limits of calls; all attacks: make test-attacks."""

import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from rl_jax.verification import sandbox

PATH = pathlib.Path(__file__).parents[2] / 'tools' / 'attacks.py'
SPEC = importlib.util.spec_from_file_location('attacks', PATH)
attacks = importlib.util.module_from_spec(SPEC)
sys.modules['attacks'] = attacks
SPEC.loader.exec_module(attacks)

pytestmark = pytest.mark.skipif(
  sys.platform != 'linux', reason='the sandbox needs Linux'
)


def test_values_and_errors_come_back_in_order():
  code = """
calls = []
def f(a, b):
  calls.append(a)
  print('not a value')
  return {'sum': a + b, 'seen': tuple(calls), 'none': None}
"""
  calls = [[1, 2], [1, 'x'], ['ü', 'x']]
  report = sandbox.run_calls(code, 'f', calls)
  first, second, third = report.results
  assert first.value == {'sum': 3, 'seen': [1], 'none': None}
  assert 'TypeError' in second.error
  assert third.value['sum'] == 'üx' and report.ended == 'exit'


@pytest.mark.parametrize(
  ('code', 'words'),
  [
    ('def f(x) return x', 'SyntaxError'),
    ('g = 1', 'KeyError'),
    ('def f(x): return {1, 2}', 'not JSON'),
    ('def f(x): return f', 'not JSON'),
    ('raise SystemExit(0)', 'SystemExit'),
    ('\0', 'null bytes'),
    ('def f(x): return "\\ud800" * x', None),
  ],
)
def test_code_that_does_not_work_is_an_error_of_its_calls(code, words):
  (result,) = sandbox.run_calls(code, 'f', [[1]]).results
  assert words is None or words in result.error


def test_classes_of_the_code_are_found_by_their_module():
  """Dataclasses with types in quotes, and pickle, look them up so."""
  code = """
from __future__ import annotations
import dataclasses, pickle, typing
@dataclasses.dataclass
class Node:
  value: int
  after: Node = None
def f(x):
  copy = pickle.loads(pickle.dumps(Node(x)))
  return [copy.value, list(typing.get_type_hints(Node))]
"""
  (result,) = sandbox.run_calls(code, 'f', [[1]]).results
  assert result.value == [1, ['value', 'after']], result.error


def test_the_order_of_a_set_is_the_same_in_every_process():
  code = 'def f(x): return list(set(x))'
  found = [
    sandbox.run_calls(code, 'f', [[list('abcdefgh')]]).results[0].value
    for _ in range(3)
  ]
  assert found[0] == found[1] == found[2]


def test_calls_behind_one_that_never_ends_have_no_value():
  code = 'def f(x):\n  while x: pass\n  return 7'
  limits = sandbox.Limits(wall_seconds=1.0)
  report = sandbox.run_calls(code, 'f', [[0], [1], [0]], limits)
  assert [r.value for r in report.results] == [7, None, None]
  assert report.ended == 'timeout'


QUICK = (
  'read a file',
  'read the environment of the parent',
  'read inherited file descriptors',
  'write a file outside',
  'kill a process',
  'kill its keeper',
  'daemon by double fork',
  'TCP to loopback',
  'memory',
  'one large file',
  'flood of values',
  'a value that is too deep',
  'judge: exit with success',
  'judge: search memory for what is expected',
)


def test_a_few_attacks_are_blocked():
  """By the layers that this machine has; the suite says which attack."""
  if sandbox.run_calls('', '', []).missing.keys() & {'landlock', 'seccomp'}:
    pytest.skip('the kernel lacks layers of the sandbox')
  with attacks.World() as world:
    found = [attacks.attack(world, n, sandbox.LAYERS) for n in QUICK]
  assert [(f.name, f.achieved) for f in found if f.achieved] == []


def test_signals_by_files_are_blocked_without_the_scope_of_landlock():
  """Landlock has it from version 6 on; here nothing but seccomp is left."""
  names = [
    n for n in attacks.programs.PROCESSES if n.startswith(('sig', 'set'))
  ]
  assert len(names) == 5
  with attacks.World() as world:
    layers = ('landlock', 'seccomp')
    found = [attacks.attack(world, n, layers, 4) for n in names]
    assert [(f.name, f.achieved) for f in found if f.achieved] == []
    open_ = [attacks.attack(world, n, ('landlock',), 4) for n in names]
    assert sum(bool(f.achieved) for f in open_) >= 3, open_


def test_a_long_request_is_read_in_blocks():
  """4 MB, byte by byte, took 8 seconds."""
  start = time.monotonic()
  (result,) = sandbox.run_calls('f = len', 'f', [['x' * (8 << 20)]]).results
  assert result.value == 8 << 20
  assert time.monotonic() - start < 4.0


def test_the_attacks_are_attacks():
  """Without its layers the sandbox does not block these."""
  names = ('read a file', 'list the processes', 'listen on a port')
  with attacks.World() as world:
    found = [attacks.attack(world, name, ()) for name in names]
    assert all(f.achieved for f in found), found
    assert world.damage() == [] and world.left_behind() == []
  assert len(attacks.programs.ALL) >= 25


_CALLER = """
from rl_jax.verification import sandbox
print('start', flush=True)
sandbox.run_calls('while True: pass', 'f', [[1]], sandbox.Limits(
  wall_seconds=600.0, cpu_seconds=600))
"""


def _processes(word):
  found = []
  for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
    try:
      if word in path.read_text():
        found.append(path.parent.name)
    except OSError:
      pass
  return found


def test_nothing_is_left_when_the_caller_is_killed(tmp_path):
  """When its caller ends, the keeper kills the child and cleans up."""
  root = str(pathlib.Path(__file__).parents[3])
  with subprocess.Popen(
    [sys.executable, '-c', _CALLER],
    stdout=subprocess.PIPE,
    env={**os.environ, 'PYTHONPATH': root, 'TMPDIR': str(tmp_path)},
  ) as process:
    process.stdout.readline()
    end = time.monotonic() + 20.0
    while len(_processes(str(tmp_path))) < 2:
      assert time.monotonic() < end, 'the sandbox never started'
      time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
  while _processes(str(tmp_path)) or any(tmp_path.iterdir()):
    assert time.monotonic() < end, 'something is left'
    time.sleep(0.01)


def test_limits_are_checked():
  for change, words in (
    ({'wall_seconds': 0.0}, 'wall_seconds = 0.0'),
    ({'open_files': 3}, 'open_files = 3'),
    ({'layers': ('magic',)}, 'magic'),
  ):
    with pytest.raises(ValueError, match=words):
      sandbox.Limits(**change)
