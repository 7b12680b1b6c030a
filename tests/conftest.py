"""Settings of the whole suite; the device suite runs in its own process."""

import collections
import functools
import gc
import importlib
import importlib.util
import itertools
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

from absl import flags, logging  # noqa: E402
import jax  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
import pytest  # noqa: E402

from rl_jax.records import metrics  # noqa: E402
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


# JAX makes a context of MLIR for each program that it lowers and keeps it with
# the program: 1.1 MB and 5 ms of the 1.4 MB and 11 ms that a small one costs.
# One context serves any number of programs.
mlir.make_ir_context = functools.cache(mlir.make_ir_context)

_SLOW = itertools.count(1)
_MOST_PROGRAMS = 2500
_kept = 0  # programs that fixtures held when the others were let go


_VERBOSITY = logging.get_verbosity()


@pytest.fixture(autouse=True)
def _same_verbosity():
  """Undoes settings of programs that tests run in this process."""
  logging.set_verbosity(_VERBOSITY)


@pytest.fixture(autouse=True)
def _few_programs(request):
  """Compiled programs are let go after every 40 slow tests, and in thousands.

  jaxlib 0.10.2 crashes in the compiler once a process holds those of about 160
  slow tests. Each has several memory maps, of which Linux grants 65,530.
  """
  global _kept
  yield
  client = jax.devices()[0].client
  many = len(client.live_executables()) >= _kept + _MOST_PROGRAMS
  if many or ('slow' in request.keywords and next(_SLOW) % 40 == 0):
    jax.clear_caches()
    gc.collect()
    _kept = len(client.live_executables())


class _Peaks:
  """The most memory that each process of the tests had, shown at the end."""

  def __init__(self):
    self.megabytes = {}

  @pytest.hookimpl(trylast=True)
  def pytest_sessionfinish(self, session):
    """Reports the memory of this process; a worker hands it to the reporter."""
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
def delayed_calls():
  """The module tests/delayed_calls.py: calls with seeded delays."""
  return _load('delayed_calls')


@pytest.fixture(scope='session')
def world_rows():
  """The module tests/world_rows.py: rows of every world."""
  return _load('world_rows')


@pytest.fixture(scope='session')
def plain_forward():
  """The function of tests/plain_model.py: row by row, without a cache."""
  return _load('plain_model').plain_forward


@pytest.fixture(scope='session')
def make_config():
  """(method, **changes) -> the bandit without evaluation.

  Changes are overrides by path (__ for a dot). Rewards are computed in this
  process unless a test sets workers.
  """

  from configs.worlds import bandit
  from rl_jax.overrides import override

  def make(method, **changes):
    config = bandit.get_config(method)
    own = {'evaluation__every': '0', 'verifier__num_workers': '0'}
    for path, text in {**own, **changes}.items():
      config = override(config, path.replace('__', '.'), text)
    return config

  return make


@pytest.fixture(scope='session')
def stripped():
  """Rows of metrics -> the same without what may differ between two runs."""

  def strip(rows):
    return [
      {k: v for k, v in row.items() if not k.startswith('time/')}
      for row in rows
    ]

  return strip


@pytest.fixture(scope='session')
def rows_of(stripped):
  """The directory of a run -> its metrics, stripped."""
  return lambda folder: stripped(
    metrics.read_jsonl(pathlib.Path(folder) / 'metrics.jsonl')
  )


@pytest.fixture(scope='session')
def record(rows_of):
  """The directory of a run -> (its metrics, stripped, and its responses)."""
  return lambda folder: (
    rows_of(folder),
    metrics.read_jsonl(folder / 'rollouts.jsonl'),
  )


@pytest.fixture(scope='session', name='Played')
def _played():
  """The class of tests/played.py: a round of episodes."""
  return _load('played').Played


@pytest.fixture(scope='session')
def in_slots():
  """The module tests/in_slots.py: the round of a `Played` once more."""
  return _load('in_slots')


@pytest.fixture(scope='session')
def plain_episodes():
  """The module tests/plain_episodes.py: the round, one row after the other."""
  return _load('plain_episodes')


@pytest.fixture(name='bad', scope='module')
def _bad():
  """The module of misbehaving environments, importable by workers as well."""
  with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(os.path.dirname(__file__))
    import misbehaving_environments

    yield misbehaving_environments


@pytest.fixture(scope='session')
def make_episodes():
  """The function of tests/played.py, which makes a SlotRunner."""
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
  """The number of compilations of each function in this process, by its name.

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
