"""Settings of the whole suite; the device suite runs in its own process."""

import collections
import contextlib
import ctypes
import gc
import importlib
import importlib.util
import os
import pathlib
import resource
import sys

os.environ.setdefault('JAX_PLATFORMS', 'cpu')
if os.environ.get('RL_JAX_TEST_DEVICES'):
  os.environ['XLA_FLAGS'] = (
    os.environ.get('XLA_FLAGS', '')
    + ' --xla_force_host_platform_device_count='
    + os.environ['RL_JAX_TEST_DEVICES']
  )

from absl import flags  # noqa: E402
import jax  # noqa: E402
import pytest  # noqa: E402

from rl_jax.runtime import mesh as mesh_lib  # noqa: E402

# Silent broadcasting of [B] against [B, T] is the commonest bug of the field.
jax.config.update('jax_numpy_rank_promotion', 'raise')


def _share_flags():
  """Tests import many binaries: a flag that two of them define is not
  an error.
  """
  define = flags.FlagValues.__setitem__

  def shared(values, name, flag):
    flag.allow_override = True
    define(values, name, flag)

  flags.FlagValues.__setitem__ = shared


_share_flags()


def pytest_collection_modifyitems(items):
  """Tests marked `devices` run only where 8 devices are emulated."""
  if jax.device_count() >= 8:
    return
  skip = pytest.mark.skip(reason='needs 8 devices: make test runs it apart')
  for item in items:
    if 'devices' in item.keywords:
      item.add_marker(skip)


# A compiled program, however small, keeps about 1.3 MB and seven memory maps
# until it is let go: 10,000 tests would hold 10 GB in two processes, and jaxlib
# crashes in the compiler when Linux grants no further map (65,530 a process).
_MOST_PROGRAMS = 1000
_kept_programs = 0


@pytest.fixture(autouse=True)
def _few_programs():
  """Compiled programs are let go once 1,000 have come since the last time.

  What a fixture of a module still holds stays. The memory goes back to the
  system, where the C library knows how, for the other processes.
  """
  global _kept_programs
  yield
  client = jax.devices()[0].client
  if len(client.live_executables()) < _kept_programs + _MOST_PROGRAMS:
    return
  jax.clear_caches()
  gc.collect()
  with contextlib.suppress(AttributeError, OSError):
    ctypes.CDLL(None).malloc_trim(0)
  _kept_programs = len(client.live_executables())


class _Peaks:
  """The most memory that each process of the tests had, shown at the end."""

  def __init__(self):
    self.megabytes = {}

  @pytest.hookimpl(trylast=True)
  def pytest_sessionfinish(self, session):
    """Of this process; a worker hands it to the process that reports."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    output = getattr(session.config, 'workeroutput', None)
    if output is not None:
      output['megabytes'] = most
    elif not self.megabytes:
      self.megabytes['main'] = most

  @pytest.hookimpl(optionalhook=True)
  def pytest_testnodedown(self, node, error):
    """A worker has ended, if it was not killed with its output."""
    del error
    output = getattr(node, 'workeroutput', {})
    self.megabytes[node.gateway.id] = output.get('megabytes', 0)

  def pytest_terminal_summary(self, terminalreporter):
    """One line."""
    peaks = sorted(self.megabytes.items())
    line = ', '.join(f'{name} {most} MB' for name, most in peaks)
    terminalreporter.write_line(f'most memory: {line}')


def pytest_configure(config):
  """Memory is part of the report."""
  config.pluginmanager.register(_Peaks())


def _load(name):
  """A module beside this file, which is on no import path."""
  path = pathlib.Path(__file__).with_name(f'{name}.py')
  spec = importlib.util.spec_from_file_location(name, path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


@pytest.fixture(scope='session')
def toy():
  """The module experiments/checks/toy.py: rollouts for pieces."""
  return importlib.import_module('experiments.checks.toy')


@pytest.fixture(scope='session')
def tiny():
  """The module tests/tiny.py: rollouts with a model."""
  return _load('tiny')


@pytest.fixture(scope='session')
def world_rows():
  """The module tests/world_rows.py: rows of every world."""
  return _load('world_rows')


@pytest.fixture(scope='session')
def plain_forward():
  """The function of tests/plain_model.py: row by row, without a cache."""
  return _load('plain_model').plain_forward


@pytest.fixture(scope='session', name='Played')
def _played():
  """The class of tests/played.py: a round of episodes."""
  return _load('played').Played


@pytest.fixture(scope='session')
def make_episodes():
  """The function of tests/played.py: (task, tokenizer, turns) -> Episodes."""
  return _load('played').make_episodes


@pytest.fixture(scope='module', name='mesh')
def _mesh():
  """A mesh of one device, in force until the module ends."""
  found = mesh_lib.make_mesh(mesh_lib.MeshConfig(), jax.devices()[:1])
  with jax.set_mesh(found):
    yield found


@pytest.fixture(scope='module')
def no_mesh_left(mesh):
  """A trainer puts a mesh in force, which other modules must not see."""
  del mesh


@pytest.fixture(scope='session')
def compiled():
  """How often each function was compiled in this process, by its name.

  From events: `_cache_size` of a jitted function is 0, though its calls are
  served, once jax's cache of the process has been cleared.
  """
  counts = collections.Counter()

  def listen(event, seconds, fun_name='', **kwargs):
    if event == '/jax/core/compile/backend_compile_duration':
      counts[fun_name.removeprefix('jit(').removesuffix(')')] += 1

  jax.monitoring.register_event_duration_secs_listener(listen)
  yield counts
  jax.monitoring.unregister_event_duration_listener(listen)


@pytest.fixture
def user_modules(monkeypatch):
  """rl_jax.user_modules; what a test loads is forgotten after it."""
  from rl_jax import user_modules as module

  monkeypatch.setattr(module, '_files', {})
  monkeypatch.setattr(module, '_named', set())
  monkeypatch.setattr(sys, 'path', [*sys.path])
  before = set(sys.modules)
  yield module
  for name in set(sys.modules) - before:
    loader = getattr(sys.modules[name], '__loader__', None)
    if isinstance(loader, module._Loader) or name in module._named:
      sys.modules.pop(name)
