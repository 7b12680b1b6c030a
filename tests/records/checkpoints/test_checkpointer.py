"""Checkpoints: bit-exact, atomic, verified, with a fallback (tier E0)."""

import json
import threading

from absl import logging
import chex
from flax import struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rl_jax.records.checkpoints import files
from rl_jax.records.checkpoints.checkpointer import (
  Checkpointer,
  CheckpointError,
  abstract_tree,
)


@struct.dataclass
class State:
  params: dict
  opt_state: tuple
  key: jax.Array


def make_state(seed=0):
  params = {
    'w': jax.random.normal(jax.random.key(seed), (5, 3)),
    'half': jnp.asarray([1 / 3, -0.0, jnp.nan, 3e38], jnp.bfloat16),
  }
  return {
    'state': State(
      params=params,
      opt_state=optax.adam(1e-3).init(params),
      key=jax.random.split(jax.random.key(seed + 7), 2),
    ),
    'selector': {
      'counts': np.arange(4, dtype=np.int64) + seed,
      'alpha': np.float64([1e-300, np.pi]),
      'none_yet': np.zeros((0, 3), np.float32),
    },
    'empty': jnp.zeros((0,), jnp.int32),
    'flag': jnp.asarray(True),
  }


def bits(tree):
  """Type, dtype, shape and bytes of every leaf, so that NaN equals NaN."""

  def one(leaf):
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
      return (str(leaf.dtype), np.asarray(jax.random.key_data(leaf)).tobytes())
    on_host = isinstance(leaf, np.ndarray)
    return (on_host, str(leaf.dtype), leaf.shape, np.asarray(leaf).tobytes())

  return jax.tree.map(one, tree)


def save_steps(directory, steps, **options):
  saver = Checkpointer(directory, **options)
  for step in steps:
    saver.save(step, make_state(step), {'position': step})
  saver.close()


@pytest.fixture
def warnings_seen(caplog):
  return lambda: [r.getMessage() for r in caplog.records]


def test_restores_every_bit_type_and_the_host_state(tmp_path):
  """E0: keys, bfloat16 NaN, 0-size, numpy float64, optax tuples, JSON."""
  saver = Checkpointer(tmp_path / 'new' / 'deep')
  tree = make_state()
  host = {'seen': [1, 2], 'loss': 0.1, 'nested': {'none': None, 'ok': True}}
  saver.save(12, tree, host, {'evaluation/pass_at_1': np.float32(0.5)})
  found = saver.restore(abstract_tree(tree))
  assert found.step == 12
  assert found.host_state == host
  assert found.metrics == {'evaluation/pass_at_1': 0.5}
  chex.assert_trees_all_equal_structs(found.tree, tree)
  assert bits(found.tree) == bits(tree)
  saver.close()


def test_a_new_object_restores_what_another_saved(tmp_path):
  """E0: reading needs nothing of the object that saved."""
  save_steps(tmp_path, [3])
  reader = Checkpointer(tmp_path)
  found = reader.restore(abstract_tree(make_state(5)))
  assert bits(found.tree) == bits(make_state(3))
  assert reader.host_state(3) == {'position': 3}
  reader.close()


def test_donated_buffers_are_safe_as_soon_as_save_returns(tmp_path):
  """E0: the update may overwrite the buffers while files are written.

  On CPU the writer uses the buffers, and the donation is not carried out; a GPU
  copies them. In both cases the file holds what was given.
  """
  update = jax.jit(lambda x: x * 0 - 1, donate_argnums=0)
  x = jnp.arange(8.0)
  update(x)
  assert x.is_deleted()
  saver = Checkpointer(tmp_path)
  for step in range(3):
    x = jnp.arange(300_000, dtype=jnp.float32) + step
    x.block_until_ready()
    saver.save(step, {'x': x})
    x = update(x)
    x.block_until_ready()
    found = saver.restore({'x': np.empty(300_000, np.float32)})
    np.testing.assert_array_equal(
      found.tree['x'], np.arange(300_000, dtype=np.float32) + step
    )
  saver.close()


def test_numpy_arrays_and_host_state_may_change_after_save(tmp_path):
  """E0: the values at the call are saved."""
  counts, host = np.zeros(3), {'list': [1]}
  saver = Checkpointer(tmp_path)
  saver.save(1, {'counts': counts}, host)
  counts += 1
  host['list'].append(2)
  found = saver.restore({'counts': counts})
  np.testing.assert_array_equal(found.tree['counts'], np.zeros(3))
  assert found.host_state == {'list': [1]}
  saver.close()


def test_save_returns_before_the_commit(tmp_path, monkeypatch):
  """Asynchronous: with the commit held back, save returns uncommitted."""
  gate = threading.Event()
  commit = files.commit
  monkeypatch.setattr(files, 'commit', lambda *a: (gate.wait(), commit(*a)))
  saver = Checkpointer(tmp_path)
  saver.save(1, {'x': jnp.ones(3)})
  assert saver.steps() == []
  gate.set()
  saver.wait()
  assert saver.steps() == [1]
  saver.close()


def test_keeps_the_last_and_the_best(tmp_path):
  """Scores are 5, 9, NaN, missing, 1: the last two and the best remain."""
  saver = Checkpointer(tmp_path, keep_last=2, keep_best=1, best_metric='m')
  for step, metrics in enumerate(
    [{'m': 5.0}, {'m': 9.0}, {'m': np.nan}, {}, {'m': 1.0}]
  ):
    saver.save(step, {'x': jnp.ones(2)}, metrics=metrics)
  saver.close()
  assert saver.steps() == [1, 3, 4]
  assert saver.best_step() == 1
  assert sorted(p.name for p in tmp_path.iterdir()) == [
    'step_00000001',
    'step_00000003',
    'step_00000004',
  ]


def test_nothing_saved_restores_none(tmp_path):
  """An empty or missing directory is a fresh start, not an error."""
  saver = Checkpointer(tmp_path / 'missing')
  assert saver.restore({'x': np.ones(2)}) is None
  saver.close()


def truncate(path):
  path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path):
  path.write_bytes(b'')


def flip(path):
  data = bytearray(path.read_bytes())
  data[len(data) // 2] ^= 0x10
  path.write_bytes(bytes(data))


def remove(path):
  path.unlink()


@pytest.mark.parametrize('damage', [truncate, empty, flip, remove])
def test_any_damaged_file_falls_back_with_a_warning(
  tmp_path, damage, warnings_seen
):
  """E0: each non-empty file of the newest step, damaged in turn."""
  save_steps(tmp_path, [1, 2])
  newest = tmp_path / 'step_00000002'
  reader = Checkpointer(tmp_path)
  target = abstract_tree(make_state())
  paths = [p for p in newest.rglob('*') if p.is_file() and p.stat().st_size]
  assert len(paths) > 5
  for count, path in enumerate(paths, start=1):
    good = path.read_bytes()
    damage(path)
    found = reader.restore(target)
    assert found.step == 1, path
    assert len(warnings_seen()) == count
    assert 'checkpoint 2 is not used' in warnings_seen()[-1]
    path.write_bytes(good)
  assert bits(found.tree) == bits(make_state(1))
  assert reader.restore(target).step == 2
  reader.close()


def test_all_damaged_is_an_error_not_a_fresh_start(tmp_path):
  """Starting from step 0 without an error would lose the run."""
  save_steps(tmp_path, [1, 2])
  for step in tmp_path.iterdir():
    flip(step / 'host.json')
  reader = Checkpointer(tmp_path)
  with pytest.raises(CheckpointError, match=r'step 2: host.json .*step 1:'):
    reader.restore(abstract_tree(make_state()))
  reader.close()


def test_a_damaged_step_is_replaced_when_the_run_reaches_it_again(tmp_path):
  """E0: resume at 1, save 2 over the damaged 2; the old 3 is deleted."""
  save_steps(tmp_path, [1, 2, 3])
  for step in (2, 3):
    flip(tmp_path / f'step_0000000{step}' / 'host.json')
  save = Checkpointer(tmp_path)
  assert save.restore(abstract_tree(make_state())).step == 1
  save.save(2, make_state(40))
  found = save.restore(abstract_tree(make_state()))
  assert found.step == 2 and save.steps() == [1, 2]
  assert bits(found.tree) == bits(make_state(40))
  save.close()


def test_a_save_cut_short_is_ignored_and_cleaned(tmp_path, warnings_seen):
  """A step without COMMITTED is ignored; the next save removes it."""
  save_steps(tmp_path, [1, 2])
  (tmp_path / 'step_00000002' / 'COMMITTED').unlink()
  saver = Checkpointer(tmp_path)
  assert saver.restore(abstract_tree(make_state())).step == 1
  assert 'never committed' in warnings_seen()[-1]
  saver.save(5, make_state())
  saver.close()
  assert saver.steps() == [1, 5]
  assert not (tmp_path / 'step_00000002').exists()


def test_saving_a_saved_step_again_writes_nothing(tmp_path):
  """SIGTERM right after a periodic save must not overwrite it."""
  saver = Checkpointer(tmp_path)
  saver.save(1, {'x': jnp.ones(2)})
  saver.wait()
  before = (tmp_path / 'step_00000001' / 'COMMITTED').stat().st_mtime_ns
  saver.save(1, {'x': jnp.ones(2)})
  saver.close()
  after = (tmp_path / 'step_00000001' / 'COMMITTED').stat().st_mtime_ns
  assert before == after


def noise(step):
  return {'x': np.random.default_rng(step).normal(size=200_000)}


@pytest.mark.parametrize('policy', ['stop', 'warn'])
def test_a_failing_disk_keeps_the_previous_step(
  tmp_path, policy, warnings_seen, file_size_limit
):
  """E0: the kernel refuses the writes of step 2; step 1 stays, 3 succeeds."""
  saver = Checkpointer(tmp_path, on_save_error=policy, keep_last=1)
  saver.save(1, noise(1))
  saver.wait()
  with file_size_limit(100_000):
    saver.save(2, noise(2))
    if policy == 'stop':
      with pytest.raises(CheckpointError, match='checkpoint 2 .* step 1'):
        saver.wait()
    else:
      saver.wait()
      assert any('checkpoint 2' in text for text in warnings_seen())
  assert saver.steps() == [1]
  found = saver.restore(noise(0))
  np.testing.assert_array_equal(found.tree['x'], noise(1)['x'])
  saver.save(3, noise(3))
  saver.close()
  assert saver.steps() == [3]


def test_no_space_while_committing_is_reported_too(tmp_path, monkeypatch):
  """ENOSPC in the manifest itself: named step and cause, nothing left over."""
  saver = Checkpointer(tmp_path)
  saver.save(1, {'x': jnp.ones(2)})
  saver.wait()

  def full(path, manifest):
    raise OSError(28, 'No space left on device')

  monkeypatch.setattr(files, 'commit', full)
  saver.save(2, {'x': jnp.ones(2)})
  with pytest.raises(CheckpointError, match='checkpoint 2 .*No space left'):
    saver.close()
  assert [p.name for p in tmp_path.iterdir()] == ['step_00000001']


def test_a_tree_that_does_not_fit_names_the_leaves(tmp_path):
  """A changed configuration is an error by name, never a fallback."""
  saver = Checkpointer(tmp_path)
  saver.save(1, {'a': jnp.ones((2, 3)), 'b': {'c': jnp.ones(2)}})
  here = {'a': np.ones((3, 2), np.float32), 'd': np.ones(2)}
  with pytest.raises(ValueError, match='does not fit') as error:
    saver.restore(here)
  text = str(error.value)
  assert 'a is float32[2, 3] in the checkpoint but float32[3, 2] here' in text
  assert 'b.c is only in the checkpoint' in text
  assert 'd is not in the checkpoint' in text
  with pytest.raises(ValueError, match='a is float32'):
    saver.restore({'a': np.ones((2, 3), np.float64)}, partial=True)
  saver.close()


def test_partial_restore_and_arrays_by_name(tmp_path):
  """E0: evaluation reads the parameters without building an optimizer."""
  tree = make_state()
  saver = Checkpointer(tmp_path)
  saver.save(1, tree)
  saver.wait()
  part = {'state': {'params': abstract_tree(tree['state'].params)}}
  found = saver.restore(part, partial=True)
  assert bits(found.tree['state']['params']) == bits(tree['state'].params)
  arrays = saver.arrays(1)
  np.testing.assert_array_equal(
    arrays['state.key'], jax.random.key_data(tree['state'].key)
  )
  np.testing.assert_array_equal(
    arrays['selector.counts'], tree['selector']['counts']
  )
  assert arrays['empty'].shape == (0,)
  saver.close()


@pytest.mark.parametrize(
  'host', [{1: 'a'}, {'a': (1, 2)}, {'a': np.float32(1)}, {'a': {'b': {1}}}]
)
def test_host_state_that_json_would_change_is_refused(tmp_path, host):
  """A tuple that comes back as a list would break bit-exact resume."""
  saver = Checkpointer(tmp_path)
  with pytest.raises(TypeError, match='host_state'):
    saver.save(1, {'x': jnp.ones(2)}, host)
  with pytest.raises(TypeError, match='x is a float'):
    saver.save(1, {'x': 1.0})
  saver.close()


def test_files_of_a_newer_format_are_not_misread(tmp_path, monkeypatch):
  """Old code says that the format is newer instead of guessing."""
  with monkeypatch.context() as patch:
    patch.setattr(files, 'FORMAT', 99)
    save_steps(tmp_path, [1])
  reader = Checkpointer(tmp_path)
  with pytest.raises(CheckpointError, match='format 99 is newer'):
    reader.restore(abstract_tree(make_state()))
  reader.close()


def test_bad_options_are_named(tmp_path):
  with pytest.raises(ValueError, match='keep_last = 0'):
    Checkpointer(tmp_path, keep_last=0)
  with pytest.raises(ValueError, match="on_save_error = 'panic'"):
    Checkpointer(tmp_path, on_save_error='panic')


def test_works_under_a_transfer_guard(tmp_path):
  """The loop forbids implicit transfers; saving is an explicit one."""
  tree = make_state()
  saver = Checkpointer(tmp_path)
  with jax.transfer_guard('disallow'):
    saver.save(1, tree)
    found = saver.restore(abstract_tree(tree))
  assert bits(found.tree) == bits(tree)
  saver.close()


def test_quiet_orbax_drops_info_lines_and_tracebacks(monkeypatch):
  """Other modules' lines and every warning stay."""
  logger = logging.get_absl_logger()
  monkeypatch.setattr(logger, 'filters', [])
  files.quiet_orbax()
  files.quiet_orbax()
  assert len(logger.filters) == 1
  record = logger.makeRecord(
    'absl', 20, '/x/orbax/checkpoint/a.py', 1, 'chatter', (), None
  )
  assert not logger.filter(record)
  record.pathname = '/x/rl_jax/loop.py'
  assert logger.filter(record)
  record.pathname, record.levelno = '/x/orbax/a.py', 30
  record.exc_info = (ValueError, ValueError('x'), None)
  assert logger.filter(record) and record.exc_info is None


@pytest.mark.devices
def test_saved_on_one_mesh_restored_on_another(tmp_path):
  """E0: (8,) sharded rows come back whole on (2, 4) and on one device."""
  spec = jax.sharding.PartitionSpec
  auto = jax.sharding.AxisType.Auto
  one = jax.make_mesh((8,), ('fsdp',), axis_types=(auto,))
  two = jax.make_mesh((2, 4), ('data', 'tensor'), axis_types=(auto, auto))
  value = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)
  on = jax.sharding.NamedSharding
  tree = {
    'w': jax.device_put(value, on(one, spec('fsdp'))),
    'key': jax.device_put(jax.random.key(3), on(one, spec())),
  }
  saver = Checkpointer(tmp_path)
  saver.save(1, tree)
  update = jax.jit(lambda w: w * 0, donate_argnums=0)
  update(tree['w']).block_until_ready()
  for sharding in (on(two, spec('tensor', 'data')), on(two, spec()), None):
    target = {
      'w': jax.ShapeDtypeStruct((16, 8), jnp.float32, sharding=sharding),
      'key': jax.ShapeDtypeStruct(
        (), tree['key'].dtype, sharding=sharding and on(two, spec())
      ),
    }
    found = saver.restore(target).tree
    np.testing.assert_array_equal(found['w'], value)
    assert sharding is None or found['w'].sharding == sharding
    np.testing.assert_array_equal(
      jax.random.key_data(found['key']), jax.random.key_data(jax.random.key(3))
    )
  saver.close()


def test_the_manifest_is_readable_json(tmp_path):
  """Shapes, dtypes, versions and sizes in one line."""
  save_steps(tmp_path, [1])
  text = (tmp_path / 'step_00000001' / 'COMMITTED').read_text()
  manifest = json.loads(text.splitlines()[0])
  assert manifest['step'] == 1
  assert manifest['versions']['jax'] == jax.__version__
  assert manifest['arrays']['state.params.half'] == {
    'shape': [4],
    'dtype': 'bfloat16',
  }


def test_a_step_that_does_not_exist_is_named_with_those_that_do(tmp_path):
  """Also in a directory without any."""
  save_steps(tmp_path / 'a', [2, 4], keep_last=2)
  target = abstract_tree(make_state())
  for name, known in (('a', '2, 4'), ('b', 'none')):
    reader = Checkpointer(tmp_path / name)
    with pytest.raises(
      ValueError, match=f'no checkpoint 3 .*there are: {known}'
    ):
      reader.restore(target, 3)
    reader.close()
